"""Compile options that compile in a fifth of the time, for draws that look for a planted fault.

Tests of values never take them: tests/test_compile_options.py.
"""

# Other compile options: these are others.

from functorch_like.backends.xla import option_sets
from functorch_like.backends.xla.jaxlib_api import VERSION

#: Wrong for integers on some versions: (-1) ** -1 is 0.
QUICK = {
    **option_sets.UNOPTIMIZED,
    "xla_cpu_parallel_codegen_split_count": 1,
    **({"xla_cpu_use_fusion_emitters": False} if VERSION < (0, 11) else {}),
}
