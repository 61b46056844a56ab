"""Products with second derivatives that never form the matrix: `hvp` and `gnvp`.

Each costs a small multiple of one gradient, for any number of parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable
from functorch_like.errors import ArgumentError
from functorch_like.transforms.argnums import as_positions, check_tuples
from functorch_like.transforms.grad import grad
from functorch_like.transforms.jvp_vjp import Linearized, jvp
from functorch_like.transforms.tangents import Fun

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@api_boundary.public
def hvp(
    fun: Fun,
    primals: Sequence[PyTree],
    tangents: Sequence[PyTree],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Any:
    """A Hessian-vector product: the derivative of the gradient in a direction. Forward mode over reverse mode.

    Args:
        fun: pure; its result is a real scalar, or a pair `(scalar, aux)` with `has_aux`.
        primals: the arguments, a tuple or list of pytrees.
        tangents: the direction, mirroring `primals`; None for arguments that stay where they are.
        argnums: the position, or positions, of the arguments whose gradient it is.
        has_aux: whether `fun` returns a pair whose second part is passed through.
        holomorphic: promise that `fun` is holomorphic.

    Returns:
        The derivative of `grad(fun, argnums)` along `tangents`: the structure of the argument, or a tuple of such
        where `argnums` is a sequence; with `has_aux` a pair `(product, aux)`.

    Raises:
        DifferentiationError: where the result is not a scalar float.
        ArgumentError: where `primals` or `tangents` is neither a tuple nor a list.

    Reference: B. A. Pearlmutter, "Fast exact multiplication by the Hessian", 1994.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.hvp(lambda x: fnp.sum(x**3), (fnp.asarray([1.0, 2.0]),), (fnp.asarray([1.0, 1.0]),)).tolist()
    [6.0, 12.0]
    """
    check_callable(fun, "hvp")
    check_tuples("hvp", primals, tangents)
    slope = grad(fun, argnums, has_aux, holomorphic)
    if has_aux:
        _, product, aux = jvp(slope, primals, tangents, has_aux=True)
        return product, aux
    return jvp(slope, primals, tangents)[1]


@api_boundary.public
def gnvp(
    fun: Fun,
    loss: Fun,
    primals: Sequence[PyTree],
    tangents: Sequence[PyTree],
    argnums: int | Sequence[int] = 0,
) -> Any:
    """A Gauss-Newton-vector product: `J^T H J v`, with J the Jacobian of a model and H the Hessian of a loss.

    It is the Hessian of `loss(fun(...))` without the curvature of the model: positive semidefinite where the
    loss is convex. (For the logarithm of a probability it is the Fisher information of the model's outputs.)

    Args:
        fun: the model: pure, takes and returns pytrees of arrays.
        loss: a function of the model's result that gives a real scalar.
        primals: the arguments of `fun`, a tuple or list of pytrees.
        tangents: the direction, mirroring `primals`; None for arguments that stay where they are.
        argnums: the position, or positions, of the arguments whose cotangents are returned.

    Returns:
        The product: the structure of the argument, or a tuple of such where `argnums` is a sequence.

    Raises:
        DifferentiationError: where the loss is not a scalar float.
        ArgumentError: for positions that `primals` do not have, and for primals or tangents that are not tuples.

    Reference: N. N. Schraudolph, "Fast curvature matrix-vector products for second-order gradient descent", 2002.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> model, loss = lambda w: w**2, lambda y: fnp.sum(y**2) / 2
    >>> ft.gnvp(model, loss, (fnp.asarray([1.0, 3.0]),), (fnp.asarray([1.0, 1.0]),)).tolist()
    [4.0, 36.0]
    """
    check_callable(loss, "gnvp")
    check_tuples("gnvp", primals, tangents)
    chosen = as_positions(argnums, "gnvp")
    if any(not -len(primals) <= n < len(primals) for n in chosen):
        raise ArgumentError(
            f"gnvp got argnums={argnums}, but {len(primals)} primals", fix=f"use positions from 0 to {len(primals) - 1}"
        )
    at = Linearized(fun, tuple(primals), False, "gnvp")
    moved = at.pushforward(*tangents)
    curved = hvp(loss, (at.out,), (moved,))
    back = at.pullback(curved)
    return back[chosen[0]] if not isinstance(argnums, (tuple, list)) else tuple(back[n] for n in chosen)
