"""`pallas_call`: a kernel that works on blocks of arrays, as a loop over its grid in one XLA program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.avals import ShapedArray
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, ShapeError, TreeError
from functorch_like.experimental.pallas import memory
from functorch_like.experimental.pallas.blocks import Blocks, blocks_of
from functorch_like.experimental.pallas.environment import Step, grid_sizes, tracing
from functorch_like.experimental.pallas.grid import GridLoop
from functorch_like.experimental.pallas.specs import BlockSpec, GridSpec, no_block_spec
from functorch_like.experimental.pallas.staged_kernel import staged_step
from functorch_like.numpy.creation import asarray
from functorch_like.primitives import structural
from functorch_like.ref.captured import register
from functorch_like.ref.reference import Ref
from functorch_like.ref.views import RefView
from functorch_like.source_info import name_of
from functorch_like.transforms.jit import jit

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


def pallas_call(
    kernel: Callable[..., None],
    out_shape: PyTree,
    *,
    grid_spec: GridSpec | None = None,
    grid: int | Sequence[Hashable] = (),
    in_specs: PyTree = no_block_spec,
    out_specs: PyTree = no_block_spec,
    scratch_shapes: PyTree = (),
    input_output_aliases: Mapping[int, int] | None = None,
    debug: bool = False,
    interpret: object = False,
    name: str | None = None,
    compiler_params: object = None,
    cost_estimate: object = None,
    metadata: Mapping[str, str] | None = None,
) -> Callable[..., Any]:
    """Make a function of arrays from a kernel that works on one block of each at a time.

    The function is one XLA program on all devices: a loop over the grid, in order, the last axis fastest. It is
    compiled, and transformed by grad and vmap, like any function. Kernels are not compiled by Mosaic or Triton.

    Args:
        kernel: `(*scalar operands, *operands, *results, *scratch) -> None`; each is a Ref, or a pytree of Refs. It may
            close over arrays.
        out_shape: a pytree of `ft.ShapeDtypeStruct`s or arrays. Of a tuple or list, the kernel gets each item.
        grid_spec: grid, specs and scratch in one object, instead of the next four.
        grid: number of steps along each axis; an int for one axis.
        in_specs: a `BlockSpec` for each operand, in the structure of the operands; without it each is one block.
        out_specs: the same for the results.
        scratch_shapes: descriptions of scratch arrays, such as `pltpu.VMEM(shape, dtype)`, which keep their values
            from one step to the next: a sequence, or a dict by the names of parameters.
        input_output_aliases: positions of results by positions of operands, counted in leaves. Such a result begins
            with the values of the operand; the operand itself does not change.
        debug: print the program of the call when it is traced.
        interpret: taken for JAX's sake: True and False give the same program. Of `pltpu.InterpretParams`,
            `uninitialized_memory="zero"` has an effect, others have none.
        name: name of the program; the kernel's by default.
        compiler_params: of `pltpu.CompilerParams`, `dimension_semantics` declares axes "parallel": none of their steps
            reads what another one has left in scratch. Others have no effect.
        cost_estimate: taken, and without effect.
        metadata: taken, and without effect.

    Returns:
        A function of the operands, which returns arrays in the structure of `out_shape`, lists as tuples. Elements
        that no step has written are NaN; least integers; False. So are those of blocks beyond the end of an array;
        what is written there is dropped.

    Raises:
        ArgumentError: for `grid_spec` beside what it holds; at the call, for kernels that return a value, specs of
            another kind, aliases that do not exist.
        TreeError: at the call, where specs have another structure than their arrays.
        ShapeError: at the call, where a block has another number of dimensions than its array, an index map returns
            another number of indices, or an alias has another shape or dtype.
        DtypeError: at the call, for indices that are not integers, and values of another dtype than their Ref.
        BoundsError: at the call, where a kernel reads or writes out of bounds at a known place.

    Example:
        >>> import functorch_like as ft, functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> def add(x_ref, y_ref, o_ref):
        ...     o_ref[...] = x_ref[...] + y_ref[...]
        >>> block = pl.BlockSpec((2,), lambda i: i)
        >>> out = ft.ShapeDtypeStruct((6,), "float32")
        >>> f = pl.pallas_call(add, out, grid=3, in_specs=[block, block], out_specs=block)
        >>> f(fnp.arange(6.0), fnp.ones(6)).tolist()
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    """
    check_callable(kernel, "pallas_call", "pallas_call(kernel, out_shape, ...)(*operands)")
    title = name or name_of(kernel)
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    elif grid != () or in_specs is not no_block_spec or out_specs is not no_block_spec or scratch_shapes != ():
        raise ArgumentError(
            f"pallas_call of {title} got grid_spec= and grid, specs or scratch_shapes beside it",
            fix="put them into the grid_spec",
        )
    call = KernelCall(kernel, title, grid_spec, out_shape, dict(input_output_aliases or {}))
    semantics = getattr(compiler_params, "dimension_semantics", None) or ()
    names = [getattr(kind, "value", kind) for kind in semantics]
    call.parallel = frozenset(k for k, kind in enumerate(names) if kind in ("parallel", "core_parallel"))
    call.zeros = getattr(interpret, "uninitialized_memory", "nan") == "zero"

    @wraps(kernel)
    def run(*operands: Any) -> Any:
        return call(operands)

    run.__name__ = run.__qualname__ = title
    del run.__wrapped__  # its parameters are others
    compiled = jit(run)
    if not debug:
        return compiled

    @wraps(run)
    def shown(*operands: Any) -> Any:
        print(compiled.trace(*operands).jaxpr)
        return compiled(*operands)

    return shown


class KernelCall:
    """The call of a kernel: what `pallas_call` was given.

    Attributes:
        kernel: the function of Refs.
        name: its name.
        spec: grid, blocks and scratch.
        aliases: positions of results by positions of operands.
        zeros: whether memory is zero at first, instead of NaN.
        parallel: axes of the grid that the user has declared parallel.
    """

    def __init__(
        self, kernel: Callable[..., Any], name: str, spec: GridSpec, out_shape: Any, aliases: dict[int, int]
    ) -> None:
        self.kernel, self.name, self.spec, self.aliases = kernel, name, spec, aliases
        if not isinstance(spec.scratch_shapes, (dict, tuple, list)):
            raise ArgumentError(
                f"scratch_shapes of kernel {name} is {spec.scratch_shapes!r:.60}, which is no dict, tuple or list",
                fix="put the description of one scratch array into a list, too: scratch_shapes=[...]",
            )
        out_shape = tuple(out_shape) if isinstance(out_shape, list) else out_shape
        self.several = isinstance(out_shape, tuple)
        self.out_tree, self.out_avals = self._results(out_shape)
        self.zeros = False
        self.parallel: frozenset[int] = frozenset()

    def _results(self, out_shape: Any) -> tuple[Any, list[ShapedArray]]:
        leaves, structure = tree.flatten(out_shape, is_leaf=lambda x: hasattr(x, "shape"))
        for leaf in leaves:
            if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
                raise ArgumentError(
                    f"out_shape of kernel {self.name} has {leaf!r:.60} of type {type(leaf).__name__}",
                    fix="give ft.ShapeDtypeStruct(shape, dtype) for each result",
                )
        avals = [ShapedArray(tuple(leaf.shape), dtypes.narrowed(np.dtype(leaf.dtype))) for leaf in leaves]
        return structure, avals

    def __call__(self, operands: tuple[Any, ...]) -> Any:
        """Return the results for operands; the current trace stages."""
        prefetched, rest = self._split(operands)
        scalars, scalar_tree = tree.flatten(prefetched)
        leaves, in_tree = tree.flatten(rest)
        scalars, leaves = ([self._array(x) for x in xs] for xs in (scalars, leaves))
        sizes = grid_sizes(self.spec.grid, self.name)
        scalar_avals = scalar_tree.unflatten([aval_of(x) for x in scalars])
        make: Callable[..., list[Blocks]] = lambda specs, avals, what: [
            blocks_of(spec, aval, len(sizes), scalar_avals, f"{what} {k}", self.name)
            for k, (spec, aval) in enumerate(zip(specs, avals, strict=True))
        ]
        inputs = make(self._specs(self.spec.in_specs, in_tree, "operands"), [aval_of(x) for x in leaves], "operand")
        outputs = make(self._specs(self.spec.out_specs, self.out_tree, "results"), self.out_avals, "result")
        shapes, scratch_tree = tree.flatten(self.spec.scratch_shapes, is_leaf=_is_scratch)
        scratch = [memory.initial(memory.described(s), self.zeros) for s in shapes]
        random = structural.zeros(ShapedArray((2,), np.dtype(np.uint32)))  # carried if the kernel draws
        self._check_parameters(len(prefetched), len(rest), scratch_tree.unflatten(scratch))

        def body(
            ids: tuple[Any, ...], blocks: list[Any], outs: list[Any], held: list[Any]
        ) -> tuple[list[Any], list[Any]]:
            refs = [Ref(b.squeeze(x), lent=True) for b, x in zip(inputs, blocks, strict=True)]
            out_refs = [Ref(b.squeeze(x), lent=True) for b, x in zip(outputs, outs, strict=True)]
            kept = [Ref(x, lent=True) for x in held]
            first = [Ref(x, lent=True) for x in scalars]
            register([*first, *refs, *out_refs, *kept])
            step = Step(self.name, sizes, ids, self.spec.grid_names, kept[-1])
            some = scratch_tree.unflatten(kept[:-1])
            results = self.out_tree.unflatten(out_refs)
            with tracing(step):
                returned = self.kernel(
                    *scalar_tree.unflatten(first),
                    *in_tree.unflatten(refs),
                    *(results if self.several else (results,)),
                    *(() if isinstance(some, dict) else some),
                    **(some if isinstance(some, dict) else {}),
                )
            if returned is not None:
                raise ArgumentError(
                    f"kernel {self.name} returned {returned!r:.60}",
                    fix="write results into the Refs of the outputs: o_ref[...] = x; and return None",
                )
            values = [_last(b, ref, x) for b, ref, x in zip(outputs, out_refs, outs, strict=True)]
            return values, [ref.read() for ref in kept]

        firsts = self._first([*scalars, *leaves])
        held = [*scratch, random]
        block_avals = [ShapedArray(b.sizes, aval_of(x).dtype) for b, x in zip(inputs, leaves, strict=True)]
        out_avals = [ShapedArray(b.sizes, aval.dtype) for b, aval in zip(outputs, self.out_avals, strict=True)]
        step, outside = staged_step(body, len(sizes), block_avals, out_avals, held, self.name)
        loop = GridLoop(sizes, inputs, outputs, scalars, step, self.parallel)
        results, last = loop.run(leaves, firsts, [*held, *(ref.read() for ref in outside)])
        for ref, value in zip(outside, last[len(held) :], strict=True):
            ref.put(value)
        return self.out_tree.unflatten(results)

    def _check_parameters(self, scalars: int, operands: int, scratch: Any) -> None:
        """Refuse a kernel whose parameters are not as many as its Refs.

        Raises:
            ArgumentError: where it cannot be called with them.
        """
        results = len(self.out_tree.unflatten(self.out_avals)) if self.several else 1
        named = scratch if isinstance(scratch, dict) else {}
        counts = {
            "scalar": scalars, "operand": operands, "result": results, "scratch array": 0 if named else len(scratch),
        }  # fmt: skip
        try:
            parameters = inspect.signature(self.kernel)
        except (TypeError, ValueError):  # callables in C have none, and some `__signature__` are none
            return
        try:
            parameters.bind(*[None] * sum(counts.values()), **named)
        except TypeError:
            refs = ", ".join(f"{n} {what}{'s' * (n > 1)}" for what, n in counts.items() if n)
            refs += f", scratch arrays {', '.join(named)}" if named else ""
            raise ArgumentError(
                f"kernel {self.name}{parameters} is called with the Refs of {refs}",
                fix="give it one parameter for each Ref, in this order",
            ) from None

    def _split(self, operands: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the operands that index maps get, and the others."""
        n = self.spec.num_scalar_prefetch
        if len(operands) < n:
            raise ArgumentError(
                f"kernel {self.name} got {len(operands)} operands, and num_scalar_prefetch={n}",
                fix="pass the scalar operands first, then the others",
            )
        return operands[:n], operands[n:]

    def _array(self, x: Any) -> Any:
        """Return an operand as an array that is strongly typed."""
        if isinstance(x, (Ref, RefView)):
            raise DtypeError(f"kernel {self.name} got {x!r:.60} as an operand", fix="pass its value: ref[...]")
        x = asarray(x)
        aval = aval_of(x)
        return structural.convert_element_type(x, new_dtype=aval.dtype, weak_type=False) if aval.weak_type else x

    def _specs(self, specs: Any, structure: Any, what: str) -> list[Any]:
        """Return the spec of each leaf."""
        n = structure.num_leaves
        if specs is no_block_spec:
            return [no_block_spec] * n
        is_leaf = lambda x: isinstance(x, BlockSpec) or x is no_block_spec
        leaves, given = tree.flatten(specs, is_leaf=is_leaf)
        if given != structure:
            name = "in_specs" if what == "operands" else "out_specs"
            raise TreeError(
                f"{name} of kernel {self.name} has the structure {given} with {len(leaves)} specs, and the {what} have "
                f"{structure} with {n} arrays",
                fix=f"give {name} one BlockSpec for each array, in the same structure; or leave {name} out",
            )
        return leaves

    def _first(self, operands: Sequence[Any]) -> list[Any]:
        """Return the first values of the results: operands that they alias, and else undefined values."""
        firsts = [memory.initial(memory.MemoryRef(aval), self.zeros) for aval in self.out_avals]
        for source, target in self.aliases.items():
            if not (0 <= source < len(operands) and 0 <= target < len(firsts)):
                raise ArgumentError(
                    f"input_output_aliases of kernel {self.name} has {source}: {target}, and there are "
                    f"{len(operands)} operands and {len(firsts)} results",
                    fix="count leaves from 0, scalar operands included",
                )
            x, aval = operands[source], self.out_avals[target]
            if aval_of(x).shape != aval.shape or aval_of(x).dtype != aval.dtype:
                raise ShapeError(
                    f"operand {source} of kernel {self.name}, {aval_of(x)!r}, is to be result {target}, {aval!r}",
                    fix="only arrays of the same shape and dtype may be aliases",
                )
            firsts[target] = x
        return firsts


def _is_scratch(x: Any) -> bool:
    return hasattr(x, "shape") or isinstance(x, memory.SemaphoreType)


def _last(blocks: Blocks, ref: Ref, before: Any) -> Any:
    """Return the block of a result after a step: the same object if the kernel has not written it."""
    cell = ref.cell(False)[0]
    return blocks.unsqueeze(cell.value) if cell.written else before
