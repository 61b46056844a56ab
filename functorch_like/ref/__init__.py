"""References to arrays: `Ref` objects that are read and written in place, for state and side outputs.

>>> import functorch_like as ft, functorch_like.numpy as fnp
>>> count = ft.new_ref(fnp.zeros(3))
>>> @ft.jit
... def step(x):
...     count[1] += 1
...     return 2 * x
>>> step(1.0).item(), step(2.0).item(), count
(2.0, 4.0, Ref([0., 2., 0.], dtype=float32))
"""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__):
    from functorch_like.ref.cells import AbstractRef as AbstractRef
    from functorch_like.ref.functions import addupdate as addupdate
    from functorch_like.ref.functions import empty_ref as empty_ref
    from functorch_like.ref.functions import free_ref as free_ref
    from functorch_like.ref.functions import freeze as freeze
    from functorch_like.ref.functions import get as get
    from functorch_like.ref.functions import new_ref as new_ref
    from functorch_like.ref.functions import set as set
    from functorch_like.ref.functions import swap as swap
    from functorch_like.ref.reference import Ref as Ref
