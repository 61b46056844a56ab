"""`emit_pipeline`: a grid inside of a kernel, over blocks of Refs to whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import tree
from functorch_like.avals import ShapedArray
from functorch_like.calling.traced_function import check_callable
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError
from functorch_like.experimental.pallas.blocks import blocks_of
from functorch_like.experimental.pallas.environment import Step, grid_sizes, innermost, tracing
from functorch_like.experimental.pallas.grid import GridLoop
from functorch_like.experimental.pallas.specs import BlockSpec, no_block_spec
from functorch_like.experimental.pallas.staged_kernel import staged_step
from functorch_like.ref.captured import register
from functorch_like.ref.reference import Ref
from functorch_like.source_info import name_of

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: int | Sequence[object],
    in_specs: PyTree = (),
    out_specs: PyTree = (),
    tiling: object = None,
    core_axis: object = None,
    core_axis_name: object = None,
    dimension_semantics: object = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
) -> Callable[..., None]:
    """Make a function that runs a kernel over the blocks of Refs. Blocks are not copied ahead of their use.

    Args:
        body: `(*operands, *results, *scratch) -> None`, a kernel of Refs to blocks.
        grid: number of steps along each axis; sizes may be traced.
        in_specs: a `BlockSpec` for each operand: a sequence.
        out_specs: the same for the results.
        tiling: taken, and without effect.
        core_axis: taken, and without effect: there is one core.
        core_axis_name: taken, and without effect.
        dimension_semantics: taken, and without effect.
        trace_scopes: taken, and without effect.
        no_pipelining: taken, and without effect.

    Returns:
        A function of the Refs of operands and results, `pipeline(*refs, scratches=())`, for use in a kernel.

    Raises:
        ArgumentError: at the call, where Refs and specs differ in number.
        ShapeError: at the call, as `pallas_call`.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> from functorch_like.experimental.pallas import tpu as pltpu
        >>> def double(x_ref, o_ref):
        ...     o_ref[...] = x_ref[...] * 2
        >>> block = pl.BlockSpec((2,), lambda i: i)
        >>> def kernel(x_ref, o_ref):
        ...     pltpu.emit_pipeline(double, grid=(3,), in_specs=[block], out_specs=[block])(x_ref, o_ref)
        >>> pl.pallas_call(kernel, ft.ShapeDtypeStruct((6,), "int32"))(fnp.arange(6)).tolist()
        [0, 2, 4, 6, 8, 10]
    """
    check_callable(body, "emit_pipeline", "emit_pipeline(body, grid=..., in_specs=..., out_specs=...)(*refs)")
    name = name_of(body)
    is_spec = lambda x: isinstance(x, BlockSpec) or x is no_block_spec
    ins, outs = (tree.leaves(s, is_leaf=is_spec) for s in (in_specs, out_specs))

    def pipeline(*refs: Any, scratches: Any = ()) -> None:
        if len(refs) != len(ins) + len(outs):
            raise ArgumentError(
                f"the pipeline of {name} got {len(refs)} Refs, and has {len(ins)} in_specs and {len(outs)} out_specs",
                fix="pass a Ref for each BlockSpec: operands first, then results",
            )
        sizes = grid_sizes(grid, name)
        values = [ref[...] for ref in refs]
        blocks = [
            blocks_of(spec, ShapedArray(aval_of(x).shape, aval_of(x).dtype), len(sizes), (), f"Ref {k}", name)
            for k, (spec, x) in enumerate(zip([*ins, *outs], values, strict=True))
        ]
        outer = innermost()

        def step(
            ids: tuple[Any, ...], parts: list[Any], results: list[Any], held: list[Any]
        ) -> tuple[list[Any], list[Any]]:
            made = [Ref(b.squeeze(x), lent=True) for b, x in zip(blocks, [*parts, *results], strict=True)]
            kept = [Ref(x, lent=True) for x in held]
            register([*made, *kept])
            with tracing(Step(name, sizes, ids, None, outer.random if outer is not None else None)):
                body(*made, *kept)
            after = zip(blocks[len(ins) :], made[len(ins) :], strict=True)
            return [b.unsqueeze(ref.read()) for b, ref in after], [ref.read() for ref in kept]

        held = [ref[...] for ref in scratches]
        avals = [ShapedArray(b.sizes, aval_of(x).dtype) for b, x in zip(blocks, values, strict=True)]
        staged, outside = staged_step(step, len(sizes), avals[: len(ins)], avals[len(ins) :], held, name)
        loop = GridLoop(sizes, blocks[: len(ins)], blocks[len(ins) :], [], staged)
        more = [ref.read() for ref in outside]
        results, last = loop.run(values[: len(ins)], values[len(ins) :], [*held, *more])
        for ref, value in zip([*refs[len(ins) :], *scratches, *outside], [*results, *last], strict=True):
            ref[...] = value

    return pipeline
