"""Compile options that take a fifth of the compile time, for runs that look for a planted fault.

Tests of values never use them, which tests/test_compile_options.py checks.
"""

# Other compile options: these are others.

from functorch_like.backends.xla import option_sets

QUICK = option_sets.QUICK
