"""Order of contractions in `einsum` of three and more operands: settings of the package opt_einsum.

Matrices A (1000, 2), B (2, 1000) and C (1000, 1) are multiplied with 4 million operations from the left and with 8
thousand from the right. The best order follows from the shapes, when a function is traced; it costs nothing in compiled
programs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from functorch_like.backends.flag_blocks import Block, Group, Module, adopt
from functorch_like.backends.settings import Setting
from functorch_like.backends.validators import Kind, boolean, integer, one_of
from functorch_like.errors import UnsupportedError

#: Strategies of opt_einsum, as documented there: the earlier in this list, the faster their time grows with the number
#: of operands.
STRATEGIES = (
    "auto", "auto-hq", "optimal", "dp", "branch-all", "branch-2", "branch-1", "random-greedy-128", "random-greedy",
    "greedy",
)  # fmt: skip
_named = one_of(*STRATEGIES)


def is_available() -> bool:
    """Return True if the package opt_einsum is installed. Without it, operands are contracted from left to right.

    >>> from functorch_like import backends
    >>> isinstance(backends.opt_einsum.is_available(), bool)
    True
    """
    return importlib.util.find_spec("opt_einsum") is not None


class _Path(Setting[Any]):
    """A setting that has an effect where opt_einsum is installed."""

    def effect(self, platform: str) -> str:
        return "" if is_available() else "opt_einsum is not installed: operands are contracted from left to right"


class PathCache(Group, name="opt_einsum.path_cache"):
    """Cache of the paths found so far, by subscripts and shapes: `backends.opt_einsum.path_cache`."""

    __slots__ = ()

    max_size = Setting(
        2048,
        integer(0),
        "Most paths that are kept.\n\nFinding one for many operands may take seconds.",
        changes="time to trace",
        in_key=False,
    )
    paths: dict[Any, Any] = {}  # noqa: RUF012  (one for all)

    @property
    def size(self) -> int:
        """Return the number of paths kept now."""
        return len(self.paths)

    def clear(self) -> None:
        """Drop all paths."""
        self.paths.clear()

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the path kept under a key; make and keep it if there is none."""
        path = self.paths.pop(key, None)
        path = make() if path is None else path
        self.paths[key] = path  # moved to the end: the most recently used one
        while len(self.paths) > self.max_size:
            self.paths.pop(next(iter(self.paths)), None)
        return path


class _Settings(Module, name="opt_einsum"):
    enabled = _Path(
        True,
        boolean,
        "Whether einsum looks for a good order of contractions; else it goes from left to right.",
        changes="jaxpr: order of contractions in einsum",
    )
    strategy = _Path(
        "auto",
        Kind(
            f"{_named.allowed}, or a function of opt_einsum's kind: (inputs, output, sizes, memory_limit) -> path",
            lambda value: value if callable(value) else _named.check(value),
            _named.parse,
            STRATEGIES,
        ),
        "Strategy by which einsum looks for an order of contractions.\n\n"
        "'auto': the best of all where operands are few, quicker ways where they are many. 'optimal': the best, in "
        "time that grows as a factorial. 'dp': the best without outer products. 'branch-2': the two best contractions "
        "at each step. 'greedy': the best one. 'random-greedy': the best of many random orders.",
        changes="jaxpr: order of contractions in einsum",
    )
    memory_limit = _Path(
        None,
        integer(1, none="no limit"),
        "The greatest number of elements of intermediate results that einsum's orders of contractions may make.\n\n"
        "Where no order keeps to it, what is left is contracted from left to right.",
        changes="jaxpr: order of contractions in einsum",
    )


enabled: bool
strategy: Any
memory_limit: int | None
path_cache = PathCache()
flags: Block
adopt(__name__, _Settings)


def get_opt_einsum() -> Any:
    """Return the package opt_einsum.

    Raises:
        UnsupportedError: where it is not installed.

    >>> from functorch_like import backends
    >>> backends.opt_einsum.get_opt_einsum().__name__
    'opt_einsum'
    """
    if not is_available():
        raise UnsupportedError("opt_einsum is not installed", fix="pip install opt_einsum")
    import opt_einsum

    return opt_einsum
