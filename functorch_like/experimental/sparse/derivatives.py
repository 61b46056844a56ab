"""Derivatives with respect to the values of sparse arrays: `grad`, `value_and_grad`, `jacfwd`, `jacrev`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import numpy as fnp
from functorch_like import tree
from functorch_like.calling.traced_function import wraps
from functorch_like.core import aval_of
from functorch_like.experimental.sparse.format import JAXSparse
from functorch_like.transforms import grad as dense_grad
from functorch_like.transforms import jacobians
from functorch_like.transforms.argnums import positions

if TYPE_CHECKING:
    from functorch_like.typing import PyTree

Argnums = int | Sequence[int]


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


class _Values:
    """Arguments split into those to differentiate, with values in the place of sparse arrays, and the rest."""

    def __init__(self, args: tuple[Any, ...], argnums: Argnums, what: str) -> None:
        self.args = args
        self.single = not isinstance(argnums, (tuple, list))
        self.nums = positions(argnums, len(args), f"sparse.{what}")
        self.trees = [tree.flatten(args[n], is_leaf=_is_sparse) for n in self.nums]

    def values(self) -> list[list[Any]]:
        """Return the arrays to differentiate with respect to."""
        return [[x.data if _is_sparse(x) else x for x in leaves] for leaves, _ in self.trees]

    def filled(self, values: list[list[Any]]) -> list[Any]:
        """Return the arguments of the function for other values."""
        args = list(self.args)
        for n, (leaves, structure), new in zip(self.nums, self.trees, values, strict=True):
            put = [_with(x, v) if _is_sparse(x) else v for x, v in zip(leaves, new, strict=True)]
            args[n] = structure.unflatten(put)
        return args

    def result(self, derivatives: list[list[Any]], fill: Callable[[Any, Any], Any]) -> Any:
        """Return derivatives in the structure of the arguments."""
        out = [
            structure.unflatten([fill(x, d) if _is_sparse(x) else d for x, d in zip(leaves, found, strict=True)])
            for (leaves, structure), found in zip(self.trees, derivatives, strict=True)
        ]
        return out[0] if self.single else tuple(out)


def _with(mat: Any, data: Any) -> Any:
    """Return a sparse array with other values, which are the first leaf of each format."""
    (_, *rest), static = mat.tree_flatten()
    return type(mat).tree_unflatten(static, (data, *rest))


def _batched(mat: Any, data: Any) -> Any:
    """Return a sparse array with more batch dimensions: those of the result that was differentiated."""
    more = aval_of(data).ndim - aval_of(mat.data).ndim
    (_, *rest), static = mat.tree_flatten()
    lead = [fnp.reshape(x, (*(1,) * more, *aval_of(x).shape)) for x in rest]
    return type(mat).tree_unflatten(static, (data, *lead))


_ARGS = """
    Args:
        fun: takes arrays, sparse arrays, or pytrees of them.
        argnums: the arguments to differentiate with respect to.
        has_aux: True where the function returns `(result, more)`.
        kwargs: as for the function of that name for dense arrays.

    Returns:
        The function of the derivatives. That of a sparse array is one with the same indices{more}.
    """


def _documented(more: str = "") -> Callable[[Any], Any]:
    def fill(function: Any) -> Any:
        function.__doc__ = f"{function.__doc__}\n{_ARGS.format(more=more)}"
        return function

    return fill


@_documented()
def value_and_grad(
    fun: Callable[..., PyTree], argnums: Argnums = 0, has_aux: bool = False, **kwargs: bool
) -> Callable[..., tuple[PyTree, PyTree]]:
    """Return a function of a result and its gradient with respect to the stored values of sparse arrays."""

    @wraps(fun)
    def both(*args: Any, **keywords: Any) -> tuple[Any, Any]:
        parts = _Values(args, argnums, "value_and_grad")
        inner = lambda values: fun(*parts.filled(values), **keywords)
        out, result = dense_grad.value_and_grad(inner, has_aux=has_aux, **kwargs)(parts.values())
        return out, parts.result(result, _with)

    return both


@_documented()
def grad(
    fun: Callable[..., PyTree], argnums: Argnums = 0, has_aux: bool = False, **kwargs: bool
) -> Callable[..., PyTree]:
    """Return a function of the gradient with respect to the stored values of sparse arrays."""
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @wraps(fun)
    def gradient(*args: Any, **keywords: Any) -> Any:
        out, result = both(*args, **keywords)
        return (result, out[1]) if has_aux else result

    return gradient


def _jacobian(name: str) -> Callable[..., Any]:
    def jacobian(
        fun: Callable[..., PyTree], argnums: Argnums = 0, has_aux: bool = False, **kwargs: bool
    ) -> Callable[..., PyTree]:
        @wraps(fun)
        def matrix(*args: Any, **keywords: Any) -> Any:
            parts = _Values(args, argnums, name)

            def inner(values: Any) -> Any:
                out = fun(*parts.filled(values), **keywords)
                result = out[0] if has_aux else out
                structure.append(tree.flatten(result)[1])
                return (tree.flatten(result)[0], out[1]) if has_aux else tree.flatten(result)[0]

            structure: list[Any] = []
            derivatives = getattr(jacobians, name)(inner, has_aux=has_aux, **kwargs)(parts.values())
            derivatives, aux = derivatives if has_aux else (derivatives, None)
            out = structure[-1].unflatten([parts.result(leaf, _batched) for leaf in derivatives])
            return (out, aux) if has_aux else out

        return matrix

    jacobian.__name__ = jacobian.__qualname__ = name
    return jacobian


#: Where the result has dimensions, they are batch dimensions of the derivative of a sparse array.
jacfwd = _jacobian("jacfwd")
jacrev = _jacobian("jacrev")
_MORE = ", whose first batch dimensions are those of the result"
jacfwd.__doc__ = "Return a function of the Jacobian with respect to stored values, by forward mode."
jacrev.__doc__ = "Return a function of the Jacobian with respect to stored values, by reverse mode."
jacfwd, jacrev = _documented(_MORE)(jacfwd), _documented(_MORE)(jacrev)
jacobian = jacrev
