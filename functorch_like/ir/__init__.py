"""Programs as data: jaxprs, functions traced into them, and passes over them."""
