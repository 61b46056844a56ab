"""Helper for tests that depend on the work of the background thread, which compiles the optimised tier."""

from functorch_like.compiler import tiers


def finish():
    """Wait until the background thread has finished all its work."""
    thread = tiers._thread
    if thread is not None:
        thread.join()
