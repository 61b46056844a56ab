"""`python -m functorch_like`: train a network on handwritten digits and look into it. See `examples/`."""

from functorch_like.examples.digits import main

if __name__ == "__main__":
    raise SystemExit(main())
