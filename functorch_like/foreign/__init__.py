"""Names, methods, modules and values of other libraries, and what to use here instead."""
