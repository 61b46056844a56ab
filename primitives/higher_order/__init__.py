"""Higher-order primitives: their parameters hold jaxprs, and their rules use the interpreters."""
