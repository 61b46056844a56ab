"""Tools that judge the package: `python -m functorch_like.testing.accuracy`."""
