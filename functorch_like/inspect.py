"""Inspection: the stages by which a function is compiled, the effect of transformations on a value, and displays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functorch_like.backends import xla
from functorch_like.backends.xla import events
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable
from functorch_like.compiler.lower import lower
from functorch_like.core import ArrayImpl, Tracer, aval_of
from functorch_like.debug import array_display, tree_display
from functorch_like.errors import ArgumentError, bytes_text
from functorch_like.ir import jaxpr_diff, jaxpr_graph, passes
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.jaxpr import display as jaxpr_display
from functorch_like.markup import display as _display
from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display
from functorch_like.primitives.effects.probe import probe as _probe
from functorch_like.transforms.abstract_calls import make_jaxpr
from functorch_like.typing import ArrayLike


class Stage(NamedTuple):
    """One stage of a function.

    Attributes:
        name: name of the stage.
        how: the step that made it from the stage before.
        size: number of its equations, operations or instructions.
        text: its full text.
    """

    name: str
    how: str
    size: str
    text: str


class History(Display):
    """The stages of a function, in order; prints as text, a long stage cut off.

    Attributes:
        stages: a list of `Stage`.
        memory: bytes of arguments, results and temporaries of the compiled program.
        cost: XLA's estimate of floating-point operations and bytes accessed.
    """

    #: Number of lines printed of each stage; `stages[i].text` has all of them.
    LINES = 40

    def __init__(self, stages: list[Stage], memory: dict[str, int], cost: dict[str, float]) -> None:
        self.stages, self.memory, self.cost = stages, memory, cost

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return the first lines of each stage, uncut, and the memory."""
        parts = [self._part(number, stage, paint) for number, stage in enumerate(self.stages, 1)]
        return "\n\n".join([*parts, "memory in bytes: " + ", ".join(f"{k} {v}" for k, v in self.memory.items())])

    def markup(self) -> elements.Markup:
        """Return each stage in a part that folds, and the memory."""
        parts = [
            elements.details(
                elements.join(
                    [
                        f"{number}. ",
                        elements.span(stage.name, "head"),
                        elements.span(f"  {stage.how}: ", "grey"),
                        stage.size,
                    ]
                ),
                elements.element("pre", "\n".join(self._lines(number, stage, 10 * self.LINES))),
            )
            for number, stage in enumerate(self.stages, 1)
        ]
        memory = elements.facts((f"{name} memory", bytes_text(size)) for name, size in self.memory.items() if size)
        return elements.join([*parts, memory])

    def _part(self, number: int, stage: Stage, paint: terminal.Paint) -> str:
        head = f"{number}. {stage.name} ({stage.how}): {stage.size}"
        return "\n".join([paint(head, "head"), *(f"   {line}" for line in self._lines(number, stage, self.LINES))])

    def _lines(self, number: int, stage: Stage, most: int) -> list[str]:
        lines = stage.text.strip().splitlines()
        more = len(lines) - most
        return lines if more <= 0 else [*lines[:most], f"... {more} more lines in stages[{number - 1}].text"]


@api_boundary.public
def history(fun: Callable[..., Any]) -> Callable[..., History]:
    """Make a function that compiles `fun` for its arguments and returns the stages.

    Args:
        fun: any function of arrays that `jit` takes, transformed or not.

    Returns:
        A function of `fun`'s arguments that returns a `History`: the jaxprs that transformations derived while it was
        traced, its jaxpr, the jaxpr after the passes, StableHLO, and XLA's program.

    Raises:
        ArgumentError: if `fun` is not callable.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> stages = ft.inspect.history(ft.grad(ft.jit(fnp.tanh)))(1.0).stages
    >>> [stage.name for stage in stages][-4:]
    ['jaxpr', 'simplified jaxpr', 'StableHLO', 'optimized HLO']
    """
    check_callable(fun, "history")

    @api_boundary.public
    def shown(*args: Any, **kwargs: Any) -> History:
        happened: list[events.Event] = []
        with events.listening(happened.append):
            jaxpr = make_jaxpr(fun)(*args, **kwargs)
        stages = [
            Stage(event.name, event.about["how"], _equations(event.about["jaxpr"]), str(event.about["jaxpr"]))
            for event in happened
            if event.kind == "derive"
        ]
        stages.append(Stage("jaxpr", jaxpr.origin, _equations(jaxpr), str(jaxpr)))
        live = passes.dead_code(jaxpr)
        folded = passes.fold_constants(live)
        simple = passes.common_subexpressions(folded)
        sizes = [len(j.equations) for j in (jaxpr, live, folded, simple)]
        how = f"equations {sizes[0]}, without dead code {sizes[1]}, constants folded {sizes[2]}, common ones shared"
        stages.append(Stage("simplified jaxpr", how, _equations(simple), str(simple)))
        device = xla.default_device()
        lowered = lower(jaxpr, name=jaxpr.name, platform=device.platform, keep_unused=True)
        text = xla.module_text(lowered.module)
        operations = sum(" = " in line for line in text.splitlines())
        stages.append(Stage("StableHLO", f"lowered for {device.platform}", f"{operations} operations", text))
        compiled = lowered.compile(device)
        optimized = _TABLES.sub("", compiled.as_text())
        instructions = sum(" = " in line for line in optimized.splitlines())
        stages.append(
            Stage("optimized HLO", f"compiled by XLA for {device}", f"{instructions} instructions", optimized)
        )
        return History(stages, compiled.memory_analysis(), compiled.cost_analysis())

    return shown


#: Tables of files and frames that XLA prints before the program; metadata refer to them.
_TABLES = re.compile(r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(\d+ .*\n)*\n+", re.MULTILINE)


def _equations(jaxpr: Jaxpr) -> str:
    return f"{len(jaxpr.equations)} equations"


@api_boundary.public
def probe(x: Any, name: str, report: Callable[[str], Any] = print) -> Any:
    """Return `x` unchanged, and report each transformation of the value.

    Eager evaluation reports the value itself; under jit the lowering is reported, once. `ft.debug.print` prints values
    at each run of a compiled program.

    Args:
        x: array or number.
        name: name of the value in the reports.
        report: function that is called with each line.

    Returns:
        `x`, of the same shape and dtype.

    >>> import functorch_like as ft
    >>> ft.vmap(lambda x: ft.inspect.probe(x, "x") * 2)(ft.numpy.arange(3)).tolist()
    x: is mapped over an axis of 3 at 0 of i32[3]
    x: is [0 1 2] i32[3]
    [0, 2, 4]
    """
    value = x if isinstance(x, (ArrayImpl, Tracer)) else np.asarray(x, aval_of(x).dtype)
    return _probe(value, name=str(name), report=report)


@api_boundary.public
def array(x: ArrayLike) -> array_display.ArrayDisplay:
    """Return a display of an array: type, device or sharding, values with their middle cut, and statistics.

    Nothing is compiled. Statistics of large arrays are those of a sample, as the display states. A notebook displays
    an array in this form without a call.

    Args:
        x: an array, a traced value, or another operand of `fnp.asarray`.

    Returns:
        A display: text when printed, HTML in notebooks.

    >>> import functorch_like as ft
    >>> print(ft.inspect.array(ft.numpy.arange(20)))
    Array i32[20]
      bytes     80 bytes
      device    cpu:0
      range     0 to 19
      mean      9.5, standard deviation 5.766
      of these  1 zero (5.00%)
      [ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
    """
    is_number = isinstance(x, (bool, int, float, complex, np.generic, list, tuple))
    return array_display.ArrayDisplay(np.asarray(x) if is_number else x)


@api_boundary.public
def tree(value: object) -> tree_display.TreeDisplay:
    """Return a display of a pytree: its nodes with leaves and bytes, its leaves with shapes and dtypes.

    No value of an array is read. Large trees are cut, and the number of omitted nodes is shown.

    Args:
        value: any pytree.

    Returns:
        A display: text when printed, HTML with nodes that fold in notebooks.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> print(ft.inspect.tree({"dense": {"w": fnp.ones((128, 64)), "b": fnp.zeros(64)}, "step": 3}))
    dict of 2           3 leaves, 32.2 KiB
      'dense': dict of 2  2 leaves, 32.2 KiB
        'b': f32[64]      256 bytes
        'w': f32[128,64]  32 KiB
      'step': 3
    """
    return tree_display.TreeDisplay(value)


@api_boundary.public
def diff(first: Jaxpr, second: Jaxpr) -> jaxpr_diff.JaxprDiff:
    """Return the differences between two jaxprs, and between those that they call.

    Equations are equal if they apply one primitive with equal parameters to corresponding values. Names of variables
    do not count.

    Args:
        first: as `ft.make_jaxpr` gives it.
        second: likewise.

    Returns:
        A display with the attributes `is_equal`, `added` and `removed`.

    Raises:
        ArgumentError: for an argument that is not a jaxpr.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> first = ft.make_jaxpr(lambda x: fnp.exp(fnp.sin(x)))(1.0)
    >>> second = ft.make_jaxpr(lambda x: fnp.exp(fnp.cos(x)))(1.0)
    >>> found = ft.inspect.diff(first, second)
    >>> found.is_equal, found.removed, found.added
    (False, 1, 1)
    """
    for value in (first, second):
        _check_jaxpr("diff", value)
    return jaxpr_diff.JaxprDiff(first, second)


@api_boundary.public
def graph(jaxpr: Jaxpr) -> jaxpr_graph.JaxprGraph:
    """Return a jaxpr as a graph of values: a picture in notebooks, layers of operations as text.

    Args:
        jaxpr: as `ft.make_jaxpr` gives it.

    Returns:
        A display with the attributes `svg` and `dot`, text for Graphviz.

    Raises:
        ArgumentError: for an argument that is not a jaxpr.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> print(ft.inspect.graph(ft.make_jaxpr(lambda x: fnp.sin(x) * fnp.cos(x))(1.0)))
    graph of <lambda>: 3 equations in 2 layers
      0  a: f32[]
      1  sin, cos
      2  mul
    """
    _check_jaxpr("graph", jaxpr)
    return jaxpr_graph.JaxprGraph(jaxpr)


def _check_jaxpr(name: str, value: object) -> None:
    if not isinstance(value, Jaxpr):
        raise ArgumentError(
            f"{name} takes a jaxpr, got {type(value).__name__}", fix="make one first: ft.make_jaxpr(f)(x)"
        )


@api_boundary.public
def show(value: object) -> None:
    """Print a display, with colours where the terminal has them; in a notebook, display it.

    Colours are left out where NO_COLOR is set, in files and in pipes.

    Args:
        value: a display, such as `ft.inspect.tree(params)` or `ft.explain(f)(x)`. A jaxpr is printed as a display, too;
            anything else as `print` does.

    >>> import functorch_like as ft
    >>> ft.inspect.show(ft.inspect.tree([1, 2]))
    list of 2  2 leaves
      0: 1
      1: 2
    """
    _display.show(jaxpr_display(value) if isinstance(value, Jaxpr) else value)


__all__ = ["History", "Stage", "array", "diff", "graph", "history", "probe", "show", "tree"]
