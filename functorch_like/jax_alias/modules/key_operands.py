"""Primitives of libraries applied to typed keys: programs hold the words of keys, rules get the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like import numpy
from functorch_like.core import aval_of
from functorch_like.jax_alias.modules import user_primitives
from functorch_like.jax_alias.modules.user_primitives import Params, Primitive, Zero
from functorch_like.random.typed_keys import KeyArray, KeyAval, KeyDtype, is_keys


def bind(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply a primitive of a library to operands of which some are arrays of typed keys.

    Args:
        prim: the primitive.
        args: operands.
        params: its parameters.

    Returns:
        The result; a list for a primitive with several. Those that its shape rule gives the dtype of keys are keys.
    """
    generators = tuple(x.dtype.impl if is_keys(x) else None for x in args)
    over = prim.over_words.setdefault(generators, OverWords(prim, generators))
    words = [x if generator else numpy.asarray(x) for x, generator in zip(_words(args), generators, strict=True)]
    avals, _ = over.results(map(aval_of, words), params)
    outs = [
        KeyArray(x, aval.impl) if isinstance(aval, KeyAval) else x
        for x, aval in zip(over.bind(*words, **params), avals, strict=True)
    ]
    return outs if prim.multiple_results else outs[0]


class OverWords(Primitive):
    """A library's primitive over the words of its operands that are keys: its rules are those of the primitive.

    A lowering rule of the primitive is not used: the implementation is traced.
    """

    multiple_results = True

    def __init__(self, prim: Primitive, generators: tuple[str | None, ...]) -> None:
        super().__init__(prim.name)
        self._prim, self._generators = prim, generators
        user_primitives.primitive_jvps[self] = self._jvp
        user_primitives.primitive_transposes[self] = self._transpose
        user_primitives.fancy_primitive_batchers[self] = self._batch

    def results(self, avals: Any, params: dict[str, Any]) -> tuple[list[Any], Any]:
        """Return the avals of the primitive's results for the avals of words, and its effects."""
        out, effects = self._prim.abstract_eval(*self._keys(avals, _key_aval), **params)
        return self._listed(out), effects

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, Any]:
        """Return the avals of results, as words, and effects."""
        out, effects = self.results(avals, params)
        return [aval.words if isinstance(aval, KeyAval) else aval for aval in out], effects

    def impl(self, *args: Any, **params: Any) -> Any:
        """Apply the implementation of the primitive to keys; return words."""
        return _words(self._listed(self._prim.impl(*self._keys(args), **params)))

    def _keys(self, words: Any, made: Any = KeyArray) -> list[Any]:
        return [x if g is None else made(x, g) for x, g in zip(words, self._generators, strict=True)]

    def _listed(self, results: Any) -> list[Any]:
        return list(results) if self._prim.multiple_results else [results]

    def _jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        rule = user_primitives.rule_in(user_primitives.primitive_jvps, self._prim, "derivative", "ad.primitive_jvps")
        keys = self._keys(primals)
        moved = [Zero(x.aval) if is_keys(x) else t for x, t in zip(keys, tangents, strict=True)]
        out, moved = (self._listed(xs) for xs in rule(tuple(keys), tuple(moved), **params))
        words = _words(out)
        zeros = [Zero.from_primal_value(w) if is_keys(x) else t for x, w, t in zip(out, words, moved, strict=True)]
        return words, zeros

    def _transpose(self, cts: Sequence[Any], *args: Any, **params: Any) -> Any:
        registry = user_primitives.primitive_transposes
        rule = user_primitives.rule_in(registry, self._prim, "transpose", "ad.primitive_transposes")
        return rule(cts if self._prim.multiple_results else cts[0], *self._keys(args), **params)

    def _batch(self, axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        out, at = user_primitives.batch(self._prim, axis, self._keys(args), dims, Params(params))
        return _words(self._listed(out)), self._listed(at)


def _words(values: Any) -> list[Any]:
    return [x._words if is_keys(x) else x for x in values]


def _key_aval(words: Any, impl: str) -> KeyAval:
    return KeyDtype(impl).aval_of_shape(tuple(words.shape[:-1]))
