"""One file for each interpreter of primitives: what applying a row means under each transformation."""
