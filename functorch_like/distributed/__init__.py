"""Programs of several processes, on one machine or many.

- `initialize`, `shutdown`, `is_initialized`: join the processes of a program and leave them.
- `elastic_loop`: a training loop that goes on when workers end or join.
- `python -m functorch_like.distributed.run --nproc 4 script.py` starts them on one machine; see docs/distributed.md.

Names and signatures are those of jax.distributed.
"""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports
from functorch_like.distributed.lifecycle import initialize as initialize
from functorch_like.distributed.lifecycle import is_initialized as is_initialized
from functorch_like.distributed.lifecycle import shutdown as shutdown

with _lazy_imports.block(__name__):
    from functorch_like.distributed.elastic.loop import elastic_loop as elastic_loop

__all__ = ["elastic_loop", "initialize", "is_initialized", "shutdown"]
