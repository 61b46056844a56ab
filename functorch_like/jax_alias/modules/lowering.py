"""`jax.extend.lowering`: contexts of MLIR with the dialects of lowered programs."""

from __future__ import annotations

from functorch_like.backends.xla import mlir
from functorch_like.backends.xla.mlir import ir
from functorch_like.jax_alias.modules.lowering_contexts import LoweringRuleContext

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]

#: The dialects of MLIR that jaxlib has, beside those of StableHLO and Shardy.
upstream_dialects = mlir.upstream_dialects()


class JaxIrContext(ir.Context):
    """A context of MLIR with all dialects of lowered programs.

    >>> with JaxIrContext():
    ...     print(ir.Type.parse("tensor<2xf32>"))
    tensor<2xf32>
    """

    def __init__(self) -> None:
        super().__init__()
        mlir.prepare(self)
