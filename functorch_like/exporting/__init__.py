"""Parts of `functorch_like.export`: the file format, symbolic dimensions, programs for all sizes, the command."""
