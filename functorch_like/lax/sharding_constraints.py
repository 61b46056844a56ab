"""with_sharding_constraint: shardings of values inside jitted functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import tree
from functorch_like.core import aval_of
from functorch_like.errors import FtError, ShardingTypeError
from functorch_like.lax.operands import error, value

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import T
    from functorch_like.typing import PyTree


def with_sharding_constraint(x: T, shardings: PyTree) -> T:
    """Give values inside a jitted function a sharding; the compiler moves data where necessary.

    Args:
        x: array, or pytree of arrays.
        shardings: a NamedSharding, or a PartitionSpec within `ft.use_mesh`, or a prefix pytree of these for the leaves
            of x. An entry `PartitionSpec.UNCONSTRAINED` leaves a dimension to the compiler, None leaves a leaf to it.

    Returns:
        The same values. Outside of jit they are moved at once, as by `ft.device_put`.

    Raises:
        ArgumentError: for an axis that the mesh lacks, or a spec where no mesh was chosen.
        ShapeError: where a spec has more entries than a leaf has dimensions.
        ShardingTypeError: where all axes of the mesh are Explicit, and the type of a leaf names others than the spec.

    >>> from functorch_like.sharding import NamedSharding, PartitionSpec as P
    >>> where = NamedSharding(ft.make_mesh((1,), ("data",)), P("data"))
    >>> ft.jit(lambda x: lax.with_sharding_constraint(x * 2, where))(fnp.arange(3)).tolist()
    [0, 2, 4]
    """
    each = iter(tree.broadcast_prefix(shardings, x, "shardings of with_sharding_constraint"))

    def one(leaf: Any) -> Any:
        where = next(each)
        return leaf if where is None else _constrained(value(leaf), where)

    return tree.map(one, x)


def _check_types(x: Any, where: Any) -> None:
    """Refuse another sharding than that of a type.

    Raises:
        ShardingTypeError: where all axes of the mesh are Explicit.
    """
    aval = aval_of(x)
    if not getattr(getattr(where, "mesh", None), "are_all_axes_explicit", False):
        return
    free = where.spec.UNCONSTRAINED in tuple(where.spec)
    if not free and where._explicit_axes(aval.ndim) != aval.explicit:
        raise ShardingTypeError(
            f"a constraint by {where.spec!r} does not fit {aval!r}: where axes are Explicit, types alone split values",
            fix="use ft.sharding.reshard(x, spec) to split it in another way",
        )


def _constrained(x: Any, where: Any) -> Any:
    from functorch_like.backends.xla import named_sharding
    from functorch_like.sharding.constraints import constrain

    try:
        placed = named_sharding.from_user(where, "the sharding of a constraint")
        _check_types(x, placed)
        return constrain(x, placed)
    except FtError as e:
        raise error(type(e), e.reason, e.fix) from None
