"""Training over several devices: data-parallel steps, split states, compressed gradients."""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__):
    from functorch_like.parallel.compression import Int8Error as Int8Error
    from functorch_like.parallel.compression import int8_error as int8_error
    from functorch_like.parallel.compression import int8_pmean as int8_pmean
    from functorch_like.parallel.compression import topk_pmean as topk_pmean
    from functorch_like.parallel.data_parallel import data_parallel as data_parallel
    from functorch_like.parallel.data_parallel import fsdp_shardings as fsdp_shardings
