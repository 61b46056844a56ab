"""The smallest program that still fails: delta debugging of jaxprs, with the values of the run that failed."""
