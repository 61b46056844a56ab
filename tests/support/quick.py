"""Compile options that compile in a fifth of the time, for draws that look for a planted fault.

Tests of values never take them: tests/test_compile_options.py.
"""

# Other compile options: these are others.

from functorch_like.backends.xla import option_sets

QUICK = option_sets.QUICK
