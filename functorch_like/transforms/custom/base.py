"""Shared parts of functions with custom rules: their arguments, and checks of the rules' results."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic

from functorch_like import dtypes, tree
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.calling.argument_notes import called_wrongly
from functorch_like.calling.call_signature import as_tuple, resolve_argnums
from functorch_like.calling.pickling import ByName
from functorch_like.calling.traced_function import check_callable
from functorch_like.calling.type_variables import P, R
from functorch_like.core import EVALUATE, Tracer, aval_of, is_value, state
from functorch_like.errors import ArgumentError, DifferentiationError, DtypeError, LeakError
from functorch_like.frames import without_frames
from functorch_like.interpreters.forward import Dual
from functorch_like.ir.trace_to_jaxpr import follower
from functorch_like.source_info import name_of
from functorch_like.transforms.custom.rule_checks import Column, Report
from functorch_like.transforms.custom.symbolic_zeros import widened
from functorch_like.transforms.tangents import error_context

#: Methods that define rules.
_DEFINING = frozenset(("def_vmap", "defjvp", "defjvps", "defvjp", "def_partition"))
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


# ------------------------------------------------------------------------------------------------------- the function
class CustomFunction(ByName, Generic[P, R]):
    """A function with custom rules; the base of `custom_jvp`, `custom_vjp` and `custom_vmap`.

    Arguments may be given by name, and left out where they have a default: rules get all of them, by position.
    """

    kind = ""

    if not TYPE_CHECKING:  # without a function it is a decorator

        def __new__(cls, fun: Any = None, *args: Any, **options: Any) -> Any:
            return functools.partial(cls, **options) if fun is None and options else super().__new__(cls)

    @api_boundary.public
    def __init__(self, fun: Callable[P, R], nondiff_argnums: Any = (), nondiff_argnames: Any = ()) -> None:
        check_callable(fun, self.kind)
        if inspect.isclass(fun) and hasattr(fun, "forward") and hasattr(fun, "backward"):
            raise ArgumentError(
                f"{self.kind} takes a function, got the class {name_of(fun)} with forward and backward",
                fix="f = ft.custom_vjp(f); f.defvjp(fwd, bwd), with fwd(*args) -> (result, residuals) and no ctx",
            )
        functools.update_wrapper(self, fun, updated=())
        self.fun: Callable[..., R] = fun
        static = resolve_argnums(fun, nondiff_argnums, nondiff_argnames, "nondiff")
        self.nondiff_argnums = static.nums
        by_name = [n for n in as_tuple(nondiff_argnames) if n not in self._names]
        if by_name:
            raise ArgumentError(
                f"nondiff_argnames={nondiff_argnames!r} of {self.name} names {by_name}, which have no position",
                fix="let the function take them by position",
            )

    @without_frames
    def __getattr__(self, name: str) -> Any:
        if name in _DEFINING and "fun" in self.__dict__:  # of a function that has rules of another kind
            return getattr(self.fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.fun)
        except (TypeError, ValueError):  # builtins without a signature
            return None

    @functools.cached_property
    def _names(self) -> list[str]:
        """Names of the arguments that may be given by position."""
        signature = self._signature
        return [] if signature is None else [p.name for p in signature.parameters.values() if p.kind in _POSITIONAL]

    @functools.cached_property
    def _plain(self) -> bool:
        """True if all arguments may be given by position, and their number is fixed."""
        return self._signature is not None and len(self._names) == len(self._signature.parameters)

    @property
    def name(self) -> str:
        return name_of(self.fun)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    def _missing(self) -> str:
        """Name the method that defines the rules, if they are not defined; else empty."""
        raise NotImplementedError

    def bind(self, called: Called, leaves: list[Any]) -> Sequence[Any]:
        """Apply the primitive."""
        raise NotImplementedError

    def _called(self, nondiff: tuple[Any, ...], in_tree: Any) -> Called:
        raise NotImplementedError

    @api_boundary.public
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        missing = self._missing()
        if missing:
            raise ArgumentError(
                f"{self.name} is a {self.kind} function without its rule", fix=missing, **error_context()
            )
        values = self._positions(args, kwargs)
        nums = self.nondiff_argnums
        nondiff = tuple(values[i] for i in nums if i < len(values))
        leaves, in_tree = xla.flatten(tuple(a for i, a in enumerate(values) if i not in nums) if nums else values)
        failed: DtypeError | None = None
        traced = False
        try:
            traced = self._check(leaves, in_tree, nondiff)
        except DtypeError as e:
            failed = e
        if failed is not None:
            return self._with_refs(failed, values)
        evaluated = not traced and state.trace is EVALUATE
        if evaluated and in_tree.num_nodes == len(leaves) + 1:
            return self.fun(*values)
        called = self._called(nondiff, in_tree)
        if evaluated:  # as under a transformation, the function gets containers that it may change
            return self.fun(*called.with_nondiff(in_tree.unflatten(leaves)))
        outs = self.bind(called, widened(leaves))
        return called.out_tree.unflatten(outs)

    def _with_refs(self, failed: DtypeError, values: tuple[Any, ...]) -> Any:
        """Answer a call with Refs among its arguments.

        Raises:
            DtypeError: the failure itself, where it had another cause, or Refs are not taken.
        """
        raise failed

    def _positions(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position."""
        signature = self._signature
        if not kwargs and (signature is None or (self._plain and len(args) == len(self._names))):
            return args
        if signature is None:
            raise ArgumentError(
                f"{self.name} has no signature that tells the positions of {list(kwargs)}",
                fix="pass them by position",
                **error_context(),
            )
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as e:
            fix = "call it as its signature says"
            raise ArgumentError(f"{self.name}{signature}: {e}", fix=fix, **error_context()) from None
        bound.apply_defaults()
        if bound.kwargs:
            raise ArgumentError(
                f"{self.name}{signature} takes {list(bound.kwargs)} by name alone, but rules are given arguments by "
                "position",
                fix="let the function take them by position",
                **error_context(),
            )
        return bound.args

    def _check(self, leaves: list[Any], in_tree: Any, nondiff: tuple[Any, ...]) -> bool:
        """Refuse arguments that a rule cannot take; return whether any is traced."""
        traced = False
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, Tracer):
                traced = True
            elif not is_value(leaf):
                raise DtypeError(
                    f"argument {self._path(in_tree, k)} of {self.name} is {leaf!r:.60} of type "
                    f"{type(leaf).__name__}, no array",
                    fix=self._not_an_array(),
                    **error_context(),
                )
        for leaf in xla.flatten(nondiff)[0] if nondiff else ():
            if isinstance(leaf, Tracer):
                traced = True
                if type(leaf) is Dual:
                    raise DifferentiationError(
                        f"a derivative is taken by a {aval_of(leaf)!r} that {self.name} is given as a nondiff argument",
                        fix="take it out of nondiff_argnums, or pass lax.stop_gradient of it",
                        **error_context(),
                    )
        return traced

    def _not_an_array(self) -> str:
        return "name its position in nondiff_argnums, or close over it"

    def _path(self, in_tree: Any, position: int) -> str:
        names = [n for i, n in enumerate(self._names) if i not in self.nondiff_argnums]
        return argument_path(in_tree, position, names)


def argument_path(in_tree: Any, position: int, names: Sequence[str]) -> str:
    """Return the user's name for a leaf of the arguments: `params['w']`, `args[2]`."""
    path = tree.leaf_paths(in_tree)[position]
    number, _, rest = path[1:].partition("]")
    return (names[int(number)] if int(number) < len(names) else f"args[{number}]") + rest


class Called:
    """One call of a function with rules: its arguments' tree, the nondiff ones, and the tree of its results.

    Its methods are the Python functions that the primitive holds; they take and give flat leaves.
    """

    def __init__(self, custom: CustomFunction, nondiff: tuple[Any, ...], in_tree: Any) -> None:
        self.custom, self.nondiff, self.in_tree = custom, nondiff, in_tree
        self.out_tree: Any = None
        self.following = follower(state.trace)
        self.narrow = dtypes._NARROW.value
        self.in_avals: list[ShapedArray] = []

    def with_nondiff(self, diff: Sequence[Any]) -> list[Any]:
        """All arguments in their places."""
        rest = iter(diff)
        nums = self.custom.nondiff_argnums
        nondiff = dict(zip(nums, self.nondiff, strict=False))
        return [nondiff[i] if i in nondiff else next(rest) for i in range(len(nondiff) + len(diff))]

    @property
    def function(self) -> Callable[..., list[Any]]:
        """The function on flat leaves."""

        def fun(*leaves: Any) -> list[Any]:
            self.in_avals = [aval_of(x) for x in leaves]
            args = self.with_nondiff(self.in_tree.unflatten(leaves))
            with self.written_by_user():
                out = self.custom.fun(*args)
            outs, self.out_tree = xla.flatten(out)
            self.report(self.custom.fun).check_values(outs, self.out_tree)
            return outs

        fun.__name__ = self.custom.name
        fun.traced_aux = lambda: self.out_tree  # type: ignore[attr-defined]
        return fun

    @contextmanager
    def written_by_user(self, form: str = "") -> Generator[None]:
        """Run the function or a rule of it; errors for transformed values that it closes over get a remedy.

        Python control flow that is followed at the call is followed in the rules, too, which run later.

        Args:
            form: how a rule is called, for the error of one that takes other arguments.
        """
        previous, state.following = state.following, self.following
        # Functions of the package compute in 64 bits where those of users do not: so do their rules, when they run.
        width = None if dtypes._NARROW.value == self.narrow else dtypes._NARROW.swap_local(self.narrow)
        try:
            yield
        except LeakError as e:
            e.fix = (
                f"pass the value to {self.custom.name} as an argument: the function and its rules run apart from what "
                "surrounds them, and close over plain values only"
            )
            raise
        except TypeError as e:
            if form and (called_wrongly(e) or "tuple" in str(e)) and not hasattr(e, "__notes__"):
                e.add_note(f"a rule of {self.custom.name}: {form}")
            raise
        finally:
            state.following = previous
            if width is not None:
                dtypes._NARROW.restore(width)

    def report(self, rule: Any) -> Report:
        """Return a `Report` for the errors of a user's function that returns something wrong."""
        return Report(rule, self.custom.fun, self.in_avals)

    def results(self, rule: Any, out: Any, expected: Sequence[ShapedArray] | None) -> list[Any]:
        """Leaves of the result that a rule returned for the function, checked against the known avals."""
        report = self.report(rule)
        outs, out_tree = xla.flatten(out)
        report.check_values(outs, out_tree)
        if expected is not None and self.out_tree is not None:
            declared = Column(f"{self.custom.name} gives", self.out_tree, [a.strong() for a in expected])
            returned = Column("its rule gives", out_tree, [aval_of(o).strong() for o in outs])
            report.check(declared, returned, "return from the rule what the function returns")
        self.out_tree = out_tree
        return outs
