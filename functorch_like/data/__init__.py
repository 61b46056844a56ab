"""Batches of arrays in random order, and any iterable's items on devices before they are needed.

>>> import functorch_like as ft, numpy as np
>>> x, y = np.arange(10.0), np.arange(10)
>>> batches = ft.data.batches((x, y), 4, ft.random.key(0), epochs=2)
>>> [xs.shape for xs, ys in ft.data.prefetch(batches)]
[(4,), (4,), (4,), (4,)]
"""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__):
    from functorch_like.data.batching import Batches as Batches
    from functorch_like.data.batching import batches as batches
    from functorch_like.data.prefetching import Prefetch as Prefetch
    from functorch_like.data.prefetching import prefetch as prefetch
