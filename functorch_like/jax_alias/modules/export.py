"""`jax.export`: names that this package does not need."""

from __future__ import annotations

from typing import Any, NamedTuple

import functorch_like as ft
from functorch_like.backends import xla
from functorch_like.exporting.dimensions import Scope as SymbolicScope
from functorch_like.exporting.symbolic import SymbolicExported

__all__ = ["DisabledSafetyCheck", "SymbolicScope", "default_export_platform"]

#: Versions of JAX's own file format, which files of this package do not have.
maximum_supported_calling_convention_version = 10
minimum_supported_calling_convention_version = 9


class DisabledSafetyCheck(NamedTuple):
    """A check of JAX's that a program leaves out. This package makes none of them."""

    name: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Return the check of the platform at calls."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Return the check that a custom call is stable."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Return the name of the custom call; None for another check."""
        return self.name.partition(":")[2] or None


def export(fun_jit: Any, **options: Any) -> Any:
    """Return `ft.export.export`; the package's own functions, which are jitted in JAX, need no `jit`."""
    own = not hasattr(fun_jit, "trace") and getattr(fun_jit, "__module__", "").startswith("functorch_like.")
    return ft.export.export(ft.jit(fun_jit) if own else fun_jit, **options)


def _attach(exported: Any) -> None:
    """Give a class of exported programs the attributes of JAX's: those of one device, without effects."""
    exported.nr_devices = 1
    exported.ordered_effects = exported.unordered_effects = exported.disabled_safety_checks = ()
    exported.uses_global_constants = False
    exported.calling_convention_version = maximum_supported_calling_convention_version
    exported.module_kept_var_idx = property(lambda self: tuple(range(len(self.in_avals))))
    exported.in_shardings_hlo = property(lambda self: _hlo(self.in_shardings_jax(self.mesh), self.in_avals))
    exported.out_shardings_hlo = property(lambda self: _hlo(self.out_shardings_jax(self.mesh), self.out_avals))


def _hlo(shardings: Any, avals: Any) -> tuple[Any, ...]:
    """Return shardings as XLA has them."""
    pairs = zip(shardings, avals, strict=True)
    return tuple(None if s is None else s._to_xla_hlo_sharding(aval.ndim) for s, aval in pairs)


_attach(ft.export.Exported)
_attach(SymbolicExported)
_exported: Any = ft.export.Exported
_exported.mlir_module_serialized = property(lambda self: self.portable_artifact())
_exported.in_shardings_jax = _exported.in_shardings
_exported.out_shardings_jax = _exported.out_shardings
_symbolic: Any = SymbolicExported
_symbolic.mesh = None
_symbolic.in_shardings_jax = lambda self, mesh: (None,) * len(self.in_avals)
_symbolic.out_shardings_jax = lambda self, mesh: (None,) * len(self.out_avals)


def default_export_platform() -> str:
    """Return the platform that a program is exported for by default."""
    platform = xla.default_device().platform
    return "cuda" if platform == "gpu" else platform
