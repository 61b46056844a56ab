"""vmap over Refs: each element has a Ref of its own, and their last values are put back along the same axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.backends import xla
from functorch_like.calling.call_signature import argument_path
from functorch_like.calling.traced_function import wraps
from functorch_like.errors import FtError
from functorch_like.ref.captured import among, check_once, checked_result
from functorch_like.ref.cells import refuse_paths
from functorch_like.ref.reference import Ref
from functorch_like.source_info import name_of


def mapped_refs(
    vmap: Callable[..., Callable[..., Any]],
    failed: FtError,
    fun: Callable[..., Any],
    call: tuple[tuple[Any, ...], dict[str, Any]],
    in_axes: Any,
    out_axes: Any,
    dims: Sequence[int | None],
) -> Any:
    """Answer a call of a mapped function with Refs among its mapped arguments.

    Args:
        vmap: maps a function, with the user's options and other axes.
        failed: the error to raise if there are no such Refs.
        fun: the user's function.
        call: positional arguments, and those by name.
        in_axes, out_axes: the user's.
        dims: the axis of each leaf of the arguments.
    """
    leaves, structure = xla.flatten(call)
    positions = among(leaves)
    mapped = [i for i in positions if dims[i] is not None]
    if not mapped:
        raise failed
    name = f"vmap({name_of(fun)})"
    refuse_paths(f"a Ref of {name}")
    check_once([(argument_path(structure, i), leaves[i]) for i in positions], name)
    refs: list[Ref] = [leaves[i] for i in mapped]
    written = [False] * len(refs)

    @wraps(fun)
    def pure(*args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        inner = xla.flatten((args, kwargs))[0]
        ref_list = [Ref(inner[i], lent=True) for i in mapped]
        for i, ref in zip(mapped, ref_list, strict=True):
            inner[i] = ref
        args, kwargs = structure.unflatten(inner)
        result = checked_result(fun(*args, **kwargs), name)
        cells = [ref.cell(False)[0] for ref in ref_list]
        written[:] = [w or cell.written for w, cell in zip(written, cells, strict=True)]
        return [cell.value for cell in cells], result

    for i, ref in zip(mapped, refs, strict=True):
        leaves[i] = ref.read()
    args, kwargs = structure.unflatten(leaves)
    try:
        for ref in refs:
            ref.replace_in(name)
        values, out = vmap(pure, in_axes, ([dims[i] for i in mapped], out_axes))(*args, **kwargs)
    finally:
        for ref in refs:
            ref.replace_in("")
    for ref, value, changed in zip(refs, values, written, strict=True):
        if changed:
            ref.put(value)
    return out
