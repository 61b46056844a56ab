"""The background thread that compiles optimised forms: tests that count, or look at what it has done, wait for it."""

from functorch_like.compiler import tiers


def finish():
    """Wait until the background thread has compiled all that it was given."""
    thread = tiers._thread
    if thread is not None:
        thread.join()
