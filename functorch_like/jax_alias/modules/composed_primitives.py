"""Primitives of JAX that are functions of several primitives here, and those that no program here holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import functorch_like as ft
from functorch_like import lax
from functorch_like import numpy as fnp
from functorch_like.avals import ShapeDtypeStruct
from functorch_like.jax_alias.modules import random, tokens
from functorch_like.jax_alias.modules.rng_uniform import rng_uniform_p
from functorch_like.jax_alias.modules.user_primitives import Primitive


class Composed(Primitive):
    """A primitive whose `bind` applies a function of arrays: recorded programs hold that function's primitives.

    Args:
        name: its name in JAX.
        fun: takes operands, and parameters by name.
        multiple_results: whether `fun` returns a list.
    """

    is_builtin = True

    def __init__(self, name: str, fun: Callable[..., Any], multiple_results: bool = False) -> None:
        super().__init__(name)
        self._fun, self.multiple_results = fun, multiple_results

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the function."""
        return self._fun(*args, **params)

    impl = bind

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, Any]:
        """Return the avals of results, and no effects."""
        structs = [ShapeDtypeStruct(aval.shape, aval.dtype, aval.weak_type) for aval in avals]
        out = ft.eval_shape(lambda *args: self._fun(*args, **params), *structs)
        return ft.tree.map(lambda struct: struct.aval, out), frozenset()


def _each_key(fun: Callable[..., Any], *args: Any) -> Any:
    """Apply a function of one key, and of other scalars, to each of an array of them."""
    for _ in range(args[0].ndim):
        fun = ft.vmap(fun)
    return fun(*args)


def _seeded(seeds: Any, *, impl: Any) -> Any:
    fun: Callable[..., Any] = lambda seed: random.key(seed, impl=impl)
    for _ in range(fnp.ndim(seeds)):
        fun = ft.vmap(fun)
    return fun(seeds)


def _top_k(x: Any, *, k: int, reduction_dimension: int = -1, is_max_k: bool = True, **options: Any) -> list[Any]:
    fun = lax.approx_max_k if is_max_k else lax.approx_min_k
    return list(fun(x, k, reduction_dimension))


def _device_put(*xs: Any, devices: Any = (), **options: Any) -> list[Any]:
    places = devices or (None,) * len(xs)
    return [x if place is None else ft.device_put(x, place) for x, place in zip(xs, places, strict=True)]


def _bits(keys: Any, *, bit_width: int, shape: Any) -> Any:
    return _each_key(lambda key: random.bits(key, shape, f"uint{bit_width}"), keys)


#: Functions by the names of their primitives in JAX.
_SINGLE: dict[str, Callable[..., Any]] = {
    "after_all": tokens.after_all,
    "create_token": tokens.create_token,
    "random_bits": _bits,
    "random_fold_in": lambda keys, data: _each_key(ft.random.fold_in, keys, data),
    "random_seed": _seeded,
    "random_split": lambda keys, *, shape: _each_key(lambda key: ft.random.split(key, shape), keys),
    "random_unwrap": ft.random.key_data,
    "random_wrap": lambda words, *, impl: random.wrap_key_data(words, impl=impl),
    "squeeze": lambda x, *, dimensions: lax.squeeze(x, dimensions),
    "stack": lambda *xs, axis: fnp.stack(xs, axis),
    "stage": fnp.asarray,
    "symmetric_product": lambda a, c, *, alpha, beta: lax.linalg.symmetric_product(a, c, alpha=alpha, beta=beta),
    "cholesky_update": lax.linalg.cholesky_update,
}
_SEVERAL: dict[str, Callable[..., Any]] = {
    "approx_top_k": _top_k,
    "dce_sink": lambda x, **options: [],
    "device_put": _device_put,
    "unstack": lambda x, *, axis: list(fnp.unstack(x, axis=axis)),
}
#: Primitives of JAX that have neither a counterpart nor an implementation here: no equation has them.
_ABSENT = (
    "empty2", "get", "ragged_all_to_all", "random_gamma", "scatter_sub", "select_and_scatter", "swap",
)  # fmt: skip

PRIMITIVES: dict[str, Primitive] = {
    **{name: Composed(name, fun) for name, fun in _SINGLE.items()},
    **{name: Composed(name, fun, multiple_results=True) for name, fun in _SEVERAL.items()},
    **{name: Primitive(name) for name in _ABSENT},
    "rng_uniform": rng_uniform_p,
}
