"""Compile options for tests of what is computed rather than of how XLA computes it.

What such tests draw is compiled once and run once, and compiling is nine tenths of their time. The programs of other
tests are compiled as users' programs are. Settings are part of what programs are told apart by, so neither kind of test
ever runs the other's.
"""

from functorch_like.backends.xla import option_sets
from functorch_like.backends.xla.jaxlib_api import VERSION

#: The code that users' programs are made of, not optimised.
LIGHT = {**option_sets.UNOPTIMIZED, "xla_cpu_parallel_codegen_split_count": 1}
#: Other code where XLA can still make it, in a fifth of the time. It is of another mind on integers: (-1) ** -1 is 0.
QUICK = {**LIGHT, **({"xla_cpu_use_fusion_emitters": False} if VERSION < (0, 11) else {})}
