"""One file for each interpreter of primitives: what applying a primitive means under each transformation."""
