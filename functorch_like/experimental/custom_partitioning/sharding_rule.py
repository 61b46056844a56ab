"""Sharding rules: which dimensions of the operands and results of an operation belong together.

A dimension is a *factor*, or several that are multiplied. Dimensions with the same factor are split alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from functorch_like.errors import ArgumentError, ShapeError

#: Leading dimensions, as many as there are besides the others: "..." in a text.
BATCHING = "…"
_SYMBOLS = "ijklmnopqrstuvwxyz"
_GRAMMAR = "write it as in 'b ... i, i (j k) -> b ... j k'"


class CompoundFactor(tuple[str, ...]):
    """A dimension of two factors or more, the slowest varying first."""

    def __new__(cls, *factors: str) -> CompoundFactor:
        """Make a dimension of factors.

        Raises:
            ArgumentError: for fewer than two names.
        """
        if len(factors) < 2 or not all(map(_is_name, factors)):
            raise ArgumentError(f"a compound factor has two names or more, got {factors}", fix=_GRAMMAR)
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The dimensions of one operand or result: names, `CompoundFactor`s, and `BATCHING` in front."""

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        """Make a mapping of dimensions.

        Raises:
            ArgumentError: for other values, or `BATCHING` behind another dimension.
        """
        for k, each in enumerate(dim_mappings):
            if each == BATCHING and k:
                raise ArgumentError(f"batching dimensions come first, got {dim_mappings}", fix=_GRAMMAR)
            if each != BATCHING and not isinstance(each, CompoundFactor) and not _is_name(each):
                raise ArgumentError(f"{each!r:.60} is no factor", fix="use a name that begins with a letter")
        return super().__new__(cls, dim_mappings)


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch(r"[A-Za-z]\w*", text) is not None


class SdyShardingRule:
    """A sharding rule.

    Args:
        operand_mappings: an `ArrayMapping` for each operand.
        result_mappings: likewise for each result.
        reduction_factors: factors over which the operation sums.
        need_replication_factors: factors of dimensions that must not be split.
        permutation_factors: factors along which parts are exchanged.
        **factor_sizes: the sizes of factors that stand in compound factors only.

    Raises:
        ArgumentError: for factors that no dimension has, or sizes that are missing or not needed.
    """

    def __init__(
        self,
        operand_mappings: Sequence[ArrayMapping],
        result_mappings: Sequence[ArrayMapping],
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        as_mapping = lambda each: each if isinstance(each, ArrayMapping) else ArrayMapping(*each)
        self.operand_mappings = tuple(map(as_mapping, operand_mappings))
        self.result_mappings = tuple(map(as_mapping, result_mappings))
        self.special_factors = {
            "reduction": tuple(reduction_factors),
            "need_replication": tuple(need_replication_factors),
            "permutation": tuple(permutation_factors),
        }
        self.factor_sizes = dict(factor_sizes)
        self._check()

    def _check(self) -> None:
        alone: set[str] = set()
        joined: set[str] = set()
        for each in (*self.operand_mappings, *self.result_mappings):
            for dim in each:
                if isinstance(dim, CompoundFactor):
                    joined.update(dim)
                elif dim != BATCHING:
                    alone.add(dim)
        for factors in self.special_factors.values():
            for name in factors:
                if name not in alone | joined:
                    raise ArgumentError(f"no dimension has the factor {name!r}", fix="name one of the rule")
        for name in self.factor_sizes:
            if name not in joined - alone:
                raise ArgumentError(
                    f"the size of the factor {name!r} is given, which is a whole dimension, or not in the rule",
                    fix="give sizes of factors that stand in compound factors only",
                )
        missing = sorted(joined - alone - set(self.factor_sizes))
        if missing:
            raise ArgumentError(
                f"the size of the factor {missing[0]!r} is not known", fix=f"give it: {missing[0]}=..., by name"
            )

    def __repr__(self) -> str:
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes})"

    def text(self, in_shapes: Sequence[tuple[int, ...]], out_shapes: Sequence[tuple[int, ...]]) -> str:
        """Return the rule as an attribute of Shardy, for operands and results of these shapes.

        Raises:
            ShapeError: for another number of arrays or dimensions than the rule has, or dimensions that differ.
        """
        for what, mappings, shapes in (
            ("operand", self.operand_mappings, in_shapes),
            ("result", self.result_mappings, out_shapes),
        ):
            if len(mappings) != len(shapes):
                raise ShapeError(
                    f"the sharding rule has {len(mappings)} {what}s, and the function {len(shapes)}",
                    fix=f"write one group of factors for each {what}",
                )
        batching = [
            len(shape) - len(mapping) + 1
            for mapping, shape in zip(
                (*self.operand_mappings, *self.result_mappings), (*in_shapes, *out_shapes), strict=True
            )
            if BATCHING in mapping
        ]
        if len(set(batching)) > 1 or min(batching, default=0) < 0:
            raise ShapeError(
                f"'...' stands for {sorted(set(batching))} dimensions in the sharding rule",
                fix="give it the same number of dimensions everywhere",
            )
        count = batching[0] if batching else 0
        every = (*self.operand_mappings, *self.result_mappings)
        dims = [list(_dimensions(mapping, count)) for mapping in every]
        sizes = self._sizes(dims, (*in_shapes, *out_shapes))
        names = {name: _symbol(k) for k, name in enumerate(sizes)}
        shown = [f"[{', '.join(''.join(names[f] for f in dim) for dim in each)}]" for each in dims]
        split = len(in_shapes)
        special = "".join(
            f" {kind}={{{', '.join(names[f] for f in factors)}}}"
            for kind, factors in self.special_factors.items()
            if factors
        )
        measured = ", ".join(f"{names[name]}={size}" for name, size in sizes.items())
        return (
            f"#sdy.op_sharding_rule<({', '.join(shown[:split])})->({', '.join(shown[split:])}) "
            f"{{{measured}}}{special}, custom>"
        )

    def _sizes(self, dims: Sequence[Sequence[tuple[str, ...]]], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """Return the sizes of the factors, in the order in which they are met."""
        known = dict(self.factor_sizes)
        pairs: list[tuple[tuple[str, ...], int]] = []
        for each, shape in zip(dims, shapes, strict=True):
            if len(each) != len(shape):
                raise ShapeError(
                    f"the sharding rule gives an array of shape {shape} {len(each)} dimensions",
                    fix="name each dimension",
                )
            pairs += zip(each, shape, strict=True)
        for dim, size in pairs:
            if len(dim) == 1 and known.setdefault(dim[0], size) != size:
                raise ShapeError(
                    f"the factor {dim[0]!r} is {known[dim[0]]} in one dimension and {size} in another",
                    fix="name dimensions of different sizes differently",
                )
        for dim, size in pairs:
            if len(dim) > 1 and math.prod(known[name] for name in dim) != size:
                raise ShapeError(
                    f"factors {dim} of sizes {[known[name] for name in dim]} do not make a dimension of {size}",
                    fix="give sizes that do",
                )
        return {name: known[name] for dim, _ in pairs for name in dim}


def _dimensions(mapping: ArrayMapping, batching: int) -> Iterator[tuple[str, ...]]:
    for each in mapping:
        if each == BATCHING:
            yield from ((f"{BATCHING}{k}",) for k in range(batching))
        else:
            yield tuple(each) if isinstance(each, CompoundFactor) else (each,)


def _symbol(k: int) -> str:
    """Return Shardy's name of a factor: i, j, ..., z, z_1, z_2, ..."""
    return _SYMBOLS[k] if k < len(_SYMBOLS) else f"z_{k - len(_SYMBOLS) + 1}"


def parsed(text: str, special: Mapping[str, Sequence[str]], sizes: Mapping[str, int]) -> SdyShardingRule:
    """Return the rule that a text describes.

    Args:
        text: groups of factors for operands and results, separated by commas: "b i, i j -> b j".
        special: keyword arguments of `SdyShardingRule` for special factors.
        sizes: the sizes of factors.

    Raises:
        ArgumentError: for other text.
    """
    left, arrow, right = text.partition("->")
    if not arrow or "->" in right:
        raise ArgumentError(f"the sharding rule {text!r} has no '->', or several", fix=_GRAMMAR)
    return SdyShardingRule(_groups(left, text), _groups(right, text), **special, **sizes)  # type: ignore[arg-type]


def _groups(side: str, text: str) -> list[ArrayMapping]:
    return [ArrayMapping(*_factors(group, text)) for group in side.split(",")]


def _factors(group: str, text: str) -> Iterator[Any]:
    for token in re.findall(r"\.\.\.|…|\([^()]*\)|\w+|\S", group):
        if token in ("...", BATCHING):
            yield BATCHING
        elif token.startswith("("):
            yield CompoundFactor(*token[1:-1].split())
        elif _is_name(token):
            yield token
        else:
            raise ArgumentError(f"the sharding rule {text!r} has {token!r}", fix=_GRAMMAR)
