"""`jax.experimental.sparse.ad`: derivatives by stored values."""

from __future__ import annotations

from functorch_like.experimental.sparse import JAXSparse as JAXSparse
from functorch_like.experimental.sparse import grad as grad
from functorch_like.experimental.sparse import jacfwd as jacfwd
from functorch_like.experimental.sparse import jacobian as jacobian
from functorch_like.experimental.sparse import jacrev as jacrev
from functorch_like.experimental.sparse import value_and_grad as value_and_grad
