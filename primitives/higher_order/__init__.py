"""Higher-order rows: their parameters hold jaxprs, and their rules use the interpreters."""
