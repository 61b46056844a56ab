"""Contexts of lowering rules in MLIR: the module that is written, and the place of an operation."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from functorch_like.errors import UnsupportedError
from functorch_like.jax_alias.modules.name_stack import NameStack

#: JAX's names of a platform of the package, the most specific one first.
PLATFORMS = {"cpu": ("cpu",), "gpu": ("cuda", "gpu")}

#: Objects that programs refer to by address; they live as long as the process.
_KEPT: list[Any] = []


class TokenSet:
    """Tokens of ordered effects by effect. Programs here record no ordered effects of libraries: it is empty."""

    def __init__(self, tokens: dict[Any, Any] | None = None) -> None:
        self._tokens = dict(tokens or {})

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Any) -> Any:
        """Return the token of an effect.

        Raises:
            UnsupportedError: for an effect without one.
        """
        if effect not in self._tokens:
            raise UnsupportedError(
                f"there is no token of the effect {effect!r}: ordered effects of a library are not recorded",
                fix="use io_callback(ordered=True), or pass a value from one call to the next",
            )
        return self._tokens[effect]

    def items(self) -> Any:
        """Return the effects with their tokens."""
        return self._tokens.items()

    def effects(self) -> set[Any]:
        """Return the effects."""
        return set(self._tokens)

    def subset(self, effects: Any) -> TokenSet:
        """Return the tokens of some of the effects."""
        return TokenSet({effect: self.get(effect) for effect in effects})

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """Return these tokens, with those of another set in place of those of the same effects."""
        return TokenSet(self._tokens | tokens._tokens)


@dataclasses.dataclass(frozen=True)
class LoweringParameters:
    """Options of lowering; those of JAX that rules read."""

    override_lowering_rules: Any = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False


@dataclasses.dataclass
class ShapePolyLoweringState:
    """Symbolic dimensions of a program: none, since each size is lowered by itself."""

    dim_vars: tuple[str, ...] = ()
    lowering_platforms: tuple[str, ...] | None = None

    @property
    def uses_dim_vars(self) -> bool:
        """True if there are symbolic dimensions."""
        return bool(self.dim_vars)

    @property
    def has_platform_index_argument(self) -> bool:
        """True if the program is for several platforms."""
        return self.lowering_platforms is not None and len(self.lowering_platforms) > 1


@dataclasses.dataclass(frozen=True)
class ShardingContext:
    """The devices of a program that is not written for the parts of arrays."""

    num_devices: int
    device_assignment: tuple[Any, ...] | None = None
    abstract_mesh: Any = None


@dataclasses.dataclass(frozen=True)
class SPMDAxisContext:
    """The mesh of a computation on parts of arrays, and the axes along which it is written for parts."""

    mesh: Any
    manual_axes: frozenset[Any] = frozenset()


class ModuleContext:
    """The module that is being written, as rules in MLIR see it.

    Attributes:
        emitter: the package's writer of the module.
        platforms: JAX's name of the platform, in a tuple.
        cached_primitive_lowerings, lowering_cache: dictionaries for rules, one pair for each module.
    """

    all_default_mem_kind = True

    def __init__(self, emitter: Any) -> None:
        self.emitter = emitter
        self.platforms: tuple[str, ...] = (PLATFORMS[emitter.platform][0],)
        self.cached_primitive_lowerings: dict[Any, Any] = {}
        self.lowering_cache: dict[Any, Any] = {}
        self.lowering_parameters = LoweringParameters()
        self.shape_poly_state = ShapePolyLoweringState((), self.platforms)
        self.keepalives = _KEPT
        self.host_callbacks: list[Any] = []
        self._touched = False

    @classmethod
    def of(cls, emitter: Any) -> ModuleContext:
        """Return the context of an emitter's module: the same for all rules."""
        made = emitter.memo.get(cls)
        if made is None:
            made = emitter.memo[cls] = cls(emitter)
        return made

    @property
    def platform(self) -> str:
        """JAX's name of the platform."""
        return self.platforms[0]

    @property
    def context(self) -> Any:
        """The `ir.Context` of the module."""
        return self.emitter._module.context

    @property
    def module(self) -> Any:
        """The `ir.Module`."""
        self._touched = True
        return self.emitter._module

    @property
    def ip(self) -> Any:
        """The insertion point at the end of the module, for functions."""
        self._touched = True
        return self.emitter._end

    @property
    def symbol_table(self) -> Any:
        """The `ir.SymbolTable` of the module as it is now."""
        from functorch_like.backends.xla.mlir import ir

        self._touched = True
        return ir.SymbolTable(self.emitter._module.operation)

    @property
    def axis_context(self) -> ShardingContext | SPMDAxisContext:
        """The mesh around the operation, or the number of devices."""
        manual, partitioning = self.emitter.manual, self.emitter.partitioning
        if manual is not None:
            return SPMDAxisContext(manual.mesh, frozenset(manual.axes))
        return ShardingContext(1 if partitioning is None else partitioning.mesh.size)

    @property
    def backend(self) -> Any:
        """The backend of the platform."""
        return self.get_backend()

    def get_backend(self, optional: bool = False) -> Any:
        """Return the backend of the platform."""
        from functorch_like.jax_alias.modules.backend import get_backend

        return get_backend(self.emitter.platform)

    @property
    def channel_iterator(self) -> Iterator[int]:
        """The numbers of channels from here on."""
        return (self.new_channel() for _ in itertools.count())

    def new_channel(self) -> int:
        """Return a number of a channel that no other operation of the module has."""
        self.emitter._channels += 1
        return self.emitter._channels

    def add_keepalive(self, value: Any) -> None:
        """Keep an object alive to which the program refers by its address, until the process ends."""
        self.keepalives.append(value)

    def settle(self) -> None:
        """Let the emitter know the functions that a rule has added."""
        if self._touched:
            from functorch_like.backends.xla import mlir_rules

            self._touched = False
            mlir_rules.learn_symbols(self.emitter)


def _no_tokens() -> TokenSet:
    return TokenSet()


@dataclasses.dataclass
class LoweringRuleContext:
    """First argument of a lowering rule in MLIR: the place of its operation.

    Attributes:
        module_context: of the module.
        primitive: the primitive.
        avals_in, avals_out: avals of its operands and results.
        tokens_in, tokens_out: tokens of ordered effects, of which there are none.
        traceback, axis_size_env, jaxpr_eqn_ctx, platforms: unknown, and None.
        name_stack, const_lowering, dim_var_values: empty. The location in force has the names of scopes.
    """

    module_context: ModuleContext
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    name_stack: NameStack = dataclasses.field(default_factory=NameStack)
    traceback: Any = None
    tokens_in: TokenSet = dataclasses.field(default_factory=_no_tokens)
    tokens_out: TokenSet | None = None
    const_lowering: dict[Any, Any] = dataclasses.field(default_factory=dict[Any, Any])
    axis_size_env: Any = None
    dim_var_values: Sequence[Any] = ()
    jaxpr_eqn_ctx: Any = None
    platforms: Sequence[str] | None = None

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """Return the same with some attributes changed."""
        return dataclasses.replace(self, **changes)

    def set_tokens_out(self, tokens: TokenSet) -> None:
        """Set the tokens of ordered effects after the operation."""
        self.tokens_out = tokens

    def is_forward_compat(self) -> bool:
        """Return True if the program is for older versions of XLA."""
        return self.module_context.emitter.portable
