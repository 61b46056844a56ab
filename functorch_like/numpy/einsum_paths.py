"""Orders of contractions of einsum, and their costs."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any

from functorch_like.backends import opt_einsum
from functorch_like.backends.xla import events
from functorch_like.errors import ArgumentError
from functorch_like.numpy import promotion
from functorch_like.source_info import name_of

#: For each step, the positions of operands that are taken from the list; their product is appended to it.
Path = tuple[tuple[int, ...], ...]


@dataclasses.dataclass(frozen=True)
class Contraction:
    """One step of a path: a product of two operands.

    Attributes:
        subscripts: letters of the operands, and of the result: "ij,jk->ik".
        flops: multiplications and additions.
        size: elements of the result.
    """

    subscripts: str
    flops: int
    size: int


@dataclasses.dataclass(frozen=True)
class PathInfo:
    """Costs of a path.

    Attributes:
        subscripts: letters of all operands, and of the result.
        shapes: shapes of the operands.
        path: positions of operands in the list for each step; products are appended to it.
        how: the name of the strategy.
        steps: the contractions, one after the other.
        naive_flops: operations of one loop over all letters.
    """

    subscripts: str
    shapes: tuple[tuple[int, ...], ...]
    path: Path
    how: str
    steps: tuple[Contraction, ...]
    naive_flops: int

    @property
    def flops(self) -> int:
        """Multiplications and additions of all steps."""
        return sum(step.flops for step in self.steps)

    @property
    def largest_intermediate(self) -> int:
        """Elements of the largest result of a step."""
        return max((step.size for step in self.steps), default=0)

    @property
    def speedup(self) -> float:
        """Operations of one loop over all letters, divided by those of the path."""
        return self.naive_flops / max(self.flops, 1)

    def __str__(self) -> str:
        lines = [
            f"einsum {self.subscripts}, path by {self.how}",
            f"  {self.flops:.4g} operations, {self.speedup:.4g} times fewer than one loop over all letters; largest "
            f"intermediate {self.largest_intermediate:.4g} elements",
        ]
        wide = max((len(step.subscripts) for step in self.steps), default=0)
        lines += [
            f"  {step.subscripts.ljust(wide)}  {step.flops:.4g} operations, {step.size:.4g} elements"
            for step in self.steps
        ]
        return "\n".join(lines)

    __repr__ = __str__


def find_path(inputs: tuple[str, ...], result: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> PathInfo:
    """Return the path by `optimize=`, or by the current settings; paths are cached.

    Raises:
        ArgumentError: for a strategy that does not exist, or a path that does not fit.
    """
    started = time.perf_counter()
    how, limit = _strategy_and_limit(optimize, len(inputs))
    key = inputs, result, shapes, how, limit
    info = opt_einsum.path_cache.get(key, lambda: _info(inputs, result, shapes, how, limit))
    if len(inputs) > 2 and events.has_listeners():
        size = f"largest intermediate {info.largest_intermediate:.4g} elements"
        text = f"{info.how}, {' then '.join(step.subscripts for step in info.steps)}, {info.flops:.4g} operations"
        events.emit("einsum", info.subscripts, time.perf_counter() - started, how=text, size=size, info=info)
    return info


def _strategy_and_limit(optimize: Any, operands: int) -> tuple[Any, Any]:
    """Return a strategy (or False for left to right, or a path) and a limit of memory."""
    if isinstance(optimize, (list, tuple)):
        entries = [*optimize]
        if len(entries) == 2 and (
            (isinstance(entries[0], str) and entries[0] != "einsum_path") or callable(entries[0])
        ):
            return _checked_strategy(entries[0]), int(entries[1])  # NumPy's (strategy, limit)
        path = entries[1:] if entries and entries[0] == "einsum_path" else entries  # NumPy's paths begin with it
        return tuple(tuple(int(i) for i in step) for step in path), None
    if isinstance(optimize, str) or callable(optimize):
        optimize = _checked_strategy(optimize)
    elif optimize is True or (optimize is None and opt_einsum.enabled):
        optimize = opt_einsum.strategy
    elif optimize is not None and optimize is not False:
        _checked_strategy(optimize)
    if not optimize or operands <= 2 or not opt_einsum.is_available():
        return False, None
    return optimize, opt_einsum.memory_limit


def _checked_strategy(strategy: Any) -> Any:
    return type(opt_einsum).strategy.checked(strategy)


def _info(
    inputs: tuple[str, ...], result: str, shapes: tuple[tuple[int, ...], ...], how: Any, limit: int | None
) -> PathInfo:
    n, text = len(inputs), ",".join(inputs) + "->" + result
    sizes: dict[str, int] = {}
    for letters, shape in zip(inputs, shapes, strict=True):
        for c, size in zip(letters, shape, strict=True):
            sizes[c] = size if sizes.get(c, 1) == 1 else sizes[c]  # 1 broadcasts
    if isinstance(how, tuple):
        path, name = _checked(how, n, text), "the caller"
    elif n <= 2 or how is False:
        path, name = tuple((0, 1) if k == 0 else (0, n - 1 - k) for k in range(n - 1)), "left to right"
    elif callable(how):
        found: Any = how([frozenset(letters) for letters in inputs], frozenset(result), sizes, limit)
        path, name = _checked(tuple(tuple(step) for step in found), n, text), name_of(how)
    else:
        package = opt_einsum.get_opt_einsum()
        found, _ = package.contract_path(text, *shapes, shapes=True, optimize=how, memory_limit=limit)
        path, name = tuple(tuple(step) for step in found), how
    every = set("".join(inputs))
    return PathInfo(
        subscripts=text,
        shapes=shapes,
        path=path,
        how=name,
        steps=tuple(_steps(inputs, result, sizes, path)),
        naive_flops=_flops(every, set(result), sizes, n),
    )


def _checked(path: Path, count: int, text: str) -> Path:
    left = count
    for step in path:
        if len(set(step)) != len(step) or not all(0 <= i < left for i in step) or not step:
            raise promotion.error(
                ArgumentError,
                f"fnp.einsum({text!r}): step {step} of the path {list(path)} does not fit {left} operands",
                "name positions in the remaining list, to which products are appended",
            )
        left -= len(step) - 1
    if left != 1:
        raise promotion.error(
            ArgumentError,
            f"fnp.einsum({text!r}): the path {list(path)} leaves {left} operands",
            "contract until one is left, or give optimize='auto'",
        )
    return path


def _steps(inputs: Sequence[str], result: str, sizes: dict[str, int], path: Path) -> list[Contraction]:
    """Return the contractions of a path, each of two operands."""
    terms, made = list(inputs), []
    for step in path:
        chosen = [terms[i] for i in step]
        terms = [t for i, t in enumerate(terms) if i not in step]
        while len(chosen) > 1:
            needed = set(result).union(*chosen[2:], *terms)
            both = dict.fromkeys(chosen[0] + chosen[1])
            out = "".join(c for c in both if c in needed)
            flops = _flops(set(both), set(out), sizes, 2)
            made.append(Contraction(f"{chosen[0]},{chosen[1]}->{out}", flops, math.prod(sizes[c] for c in out)))
            chosen = [out, *chosen[2:]]
        terms.append(chosen[0])
    if made:
        last = made[-1]
        made[-1] = dataclasses.replace(last, subscripts=last.subscripts.partition("->")[0] + "->" + result)
    return made


def _flops(letters: set[str], kept: set[str], sizes: dict[str, int], operands: int) -> int:
    """Count the products of all operands for each combination of letters, and additions over summed letters."""
    each = max(1, operands - 1) + (letters > kept)
    return math.prod(sizes[c] for c in letters) * each
