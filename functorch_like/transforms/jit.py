"""`jit`: compile a function with XLA, once for each signature of its arguments."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, overload

from functorch_like import tree
from functorch_like.avals import ShapedArray, ShapeDtypeStruct
from functorch_like.backends import compilation, xla
from functorch_like.backends.external_settings import External
from functorch_like.backends.xla import compile_options, events, nesting
from functorch_like.backends.xla.dispatch import MOST_SIGNATURES
from functorch_like.backends.xla.failures import is_double_donation
from functorch_like.caches import Cache
from functorch_like.calling import api_boundary
from functorch_like.calling.call_signature import (
    CHECKED,
    FlatCall,
    Static,
    check_hashable,
    donated_twice,
    resolve_argnums,
    unwrap_static,
    wrap_static,
)
from functorch_like.calling.pickling import Transformed, transformation
from functorch_like.calling.traced_function import check_callable, operands
from functorch_like.calling.type_variables import P, R
from functorch_like.compiler.option_rules import MODES
from functorch_like.core import ArrayImpl, Tracer, argument_aval, named_axis, state
from functorch_like.errors import ArgumentError, DtypeError, nearest
from functorch_like.interpreters.evaluate import Program, device_for
from functorch_like.interrupts import held
from functorch_like.ir import dtype_origins
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import RefusingTrace, follower
from functorch_like.primitives.higher_order.call import CallSpec, apply
from functorch_like.primitives.structural import zeros
from functorch_like.source_info import name_of
from functorch_like.transforms import recompile_reasons
from functorch_like.transforms.jit_stages import Lowered, Traced

if TYPE_CHECKING:
    from concurrent.futures import Future

    from functorch_like.transforms.tier_watch import TierWatch
    from functorch_like.typing import ArrayLike, Jitted, PyTree

_DISABLED = xla.config("disable_jit", False, in_trace_key=False)
External(
    "disable_jit",
    False,
    "Whether jitted functions run as plain Python.",
    changes="whether anything is traced",
    read=lambda: _DISABLED.value,
    by="ft.disable_jit",
)

#: Traces by function, so that `jit(f)` made anew does not trace `f` again. They die with the function.
_TRACES: weakref.WeakKeyDictionary[Any, Cache[Any, Traced]] = weakref.WeakKeyDictionary()
_MOST_TRACES = MOST_SIGNATURES
_ARRAYS = (ArrayImpl, ShapeDtypeStruct)


@contextmanager
def disable_jit(disable: bool = True) -> Generator[None]:
    """Within the block, in this thread, jitted functions run as plain Python: one primitive after the other.

    Args:
        disable: False turns jit on again inside an outer `disable_jit`.

    Returns:
        A context manager.

    >>> import functorch_like as ft
    >>> with disable_jit():
    ...     y = ft.jit(lambda x: x + 1 if x > 0 else x)(2.0)  # a Python `if` on a value
    >>> float(y)
    3.0
    """
    token = _DISABLED.swap_local(bool(disable))
    try:
        yield
    finally:
        _DISABLED.restore(token)


def jit_is_disabled() -> bool:
    """Return True if this is inside a `disable_jit` block."""
    return _DISABLED.value


@overload
def jit(
    fun: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: dict[str, str | int | float | bool] | None = None,
    mode: str = "default",
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    control_flow: str | None = None,
    max_paths: int = 16,
    fullgraph: bool = False,
    buckets: dict[str, int] | None = None,
    bucket_sizes: Sequence[int] | None = None,
) -> Jitted[P, R]: ...
@overload
def jit(
    fun: None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: dict[str, str | int | float | bool] | None = None,
    mode: str = "default",
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    control_flow: str | None = None,
    max_paths: int = 16,
    fullgraph: bool = False,
    buckets: dict[str, int] | None = None,
    bucket_sizes: Sequence[int] | None = None,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
@api_boundary.public
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: dict[str, str | int | float | bool] | None = None,
    mode: str = "default",
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    control_flow: str | None = None,
    max_paths: int = 16,
    fullgraph: bool = False,
    buckets: dict[str, int] | None = None,
    bucket_sizes: Sequence[int] | None = None,
) -> Any:
    """Compile a pure function of arrays.

    The function is traced once for each set of shapes, dtypes, weak types, static values, argument structure and
    settings, and the compiled program runs from then on without Python.

    Args:
        fun: takes and returns pytrees of arrays. Left out, `jit` returns a decorator.
        static_argnums: positions of arguments that are compiled in; their values must be hashable.
        static_argnames: the same by name. A parameter given either way is static however it is passed.
        donate_argnums: positions of arguments whose memory the results may take; such an array cannot be used again.
        donate_argnames: the same by name.
        keep_unused: pass arguments that the function never reads to the program all the same.
        inline: inside another traced function, put the body in place instead of a call.
        compiler_options: options of XLA by name; they go before those that `mode` or settings choose.
        mode: how compile options are chosen. "default": by a rule on what the program contains. "fast-compile": to
            compile sooner, into a slower program. "reduce-overhead": on GPUs, kernels are launched as one graph; on
            CPUs the same as "default", since calls are dispatched without Python as it is. "max-autotune": the
            program is compiled in several ways at its first call, they are timed on the arguments, and the fastest
            is kept and remembered on disk; takes seconds.
        in_shardings: how arguments are split over a mesh: one sharding for all, or a tuple with a prefix pytree for
            each positional argument that is not static. Entries are NamedShardings, PartitionSpecs within
            `ft.use_mesh`, or None, the default: an argument that `device_put` has placed stays as it is, and where
            others go is the compiler's choice.
        out_shardings: how results are split, as a prefix pytree; None leaves it to the compiler. Inside of another
            traced function both are constraints.
        control_flow: what becomes of Python control flow that depends on values, `if x > 0` or `int(n)`. "error": it is
            refused. "paths": each path through the function is traced, and checked by the values it depends on; see
            docs/control_flow.md. None: as `backends.compilation.control_flow` says, which is "error" by default.
        max_paths: how many paths a signature may have.
        fullgraph: PyTorch's name for control_flow="error".
        buckets: for arguments with a varying number of rows, the axis of rows by the argument's name: {"x": 0}. They
            are padded to the size of a bucket, and one program serves all numbers of rows in it; what would read the
            padding is masked, and what cannot be is refused. See docs/control_flow.md.
        bucket_sizes: sizes of the buckets; powers of two if None.

    Returns:
        The compiled function, with `.trace(...)`, `.lower(...)`, `.eval_shape(...)`, `.warmup(...)` and
        `.clear_cache()`; of paths, `.paths()` and `.learn(...)`.

    Raises:
        ArgumentError: for positions or names `fun` does not have; at the call, for unhashable static values.
        ConcretizationError: at the call, where `fun` needs the value of a traced argument.
        ShapeError: at the call, where a sharding does not divide an argument or result; names it.
        DeviceError: at the call, for arguments on different devices.
        UnsupportedError: at the call, where `fun` does something with rows of `buckets` that has no mask; names it.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> norm = ft.jit(lambda x: fnp.sqrt(fnp.sum(x * x)))
    >>> float(norm(fnp.asarray([3.0, 4.0])))
    5.0
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            inline=inline,
            compiler_options=compiler_options,
            mode=mode,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            control_flow=control_flow,
            max_paths=max_paths,
            fullgraph=fullgraph,
            buckets=buckets,
            bucket_sizes=bucket_sizes,
        )
    check_callable(fun, "jit")
    static = resolve_argnums(fun, static_argnums, static_argnames)
    donate = resolve_argnums(fun, donate_argnums, donate_argnames, "donate")
    both = [*(n for n in donate.nums if n in static.nums), *(n for n in donate.names if n in static.names)]
    if both:
        raise ArgumentError(
            f"arguments {both} are both static and donated", fix="a static argument has no memory to donate"
        )
    if mode not in MODES:
        raise ArgumentError(f"jit has no mode {mode!r}{nearest(mode, MODES)}", fix=f"use one of {', '.join(MODES)}")
    spec = CallSpec(
        name_of(fun),
        inline,
        keep_unused,
        compile_options.check(compiler_options or {}),
        mode,
    )
    options = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "inline": inline,
        "compiler_options": compiler_options,
        "mode": mode,
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "control_flow": _control_flow(control_flow, fullgraph),
        "max_paths": max_paths,
    }
    if buckets is not None:
        from functorch_like.transforms.buckets.calls import bucketed  # few functions need them

        return bucketed(jit, jit_is_disabled, fun, buckets, bucket_sizes, options)
    if bucket_sizes is not None:
        raise ArgumentError("jit was given bucket_sizes without buckets", fix='write buckets={"x": 0}')
    return _Jit(fun, static, donate, spec, options).public


def _control_flow(control_flow: str | None, fullgraph: bool) -> str | None:
    """The value of `control_flow`, checked."""
    if control_flow is not None and control_flow not in ("error", "paths"):
        raise ArgumentError(f"jit was given control_flow={control_flow!r}", fix="use 'error', 'paths' or None")
    if fullgraph and control_flow == "paths":
        raise ArgumentError("fullgraph=True refuses what control_flow='paths' allows", fix="give one of them")
    return "error" if fullgraph else control_flow


class _Jit:
    """The state behind one jitted function."""

    def __init__(
        self, fun: Callable[..., Any], static: Static, donate: Static, spec: CallSpec, options: dict[str, Any]
    ) -> None:
        self.fun, self.static, self.donate, self.spec = fun, static, donate, spec
        self.control_flow, self.max_paths = options["control_flow"], options["max_paths"]
        self.branches: Any = None  # its paths, once there is Python control flow to follow
        self.shardings: Any = None
        self.tiers: TierWatch | None = None  # measures programs of the quick tier, once there was one
        self.repeated: Any = None  # the last call, where C++ cannot run the program by itself
        if options["in_shardings"] is not None or options["out_shardings"] is not None:
            from functorch_like.sharding.jit_shardings import JitShardings  # few programs have meshes

            self.shardings = JitShardings(spec.name, options["in_shardings"], options["out_shardings"])
        try:
            self.traces = _TRACES.setdefault(fun, Cache())
        except TypeError:  # not hashable, or no weak references: bound methods of such, callables with __eq__
            self.traces = Cache()
        self.fast = xla.function(
            spec.name, fun, self.miss, self.again, static_argnums=static.nums, static_argnames=static.names
        )
        made_by = (jit, (fun,), options)
        self.public: Any = Transformed(self.checked(self.fast), *made_by)
        functools.update_wrapper(self.public, fun, updated=())
        self.public.trace, self.public.lower = self.trace, self.lower
        self.public.eval_shape = self.eval_shape
        self.public.clear_cache, self.public.warmup = self.clear_cache, self.warmup
        self.public.paths, self.public.learn = self.paths, self.learn
        self.public.optimised = self.optimised

    def checked(self, fast: Any) -> Any:
        """The function with what C++ does not do: types inside of static values, more words about those that have no
        hash, and donation.

        A donated array is released, so that using it again gives our error instead of C++'s.
        """
        nums, names = self.donate.nums, self.donate.names
        static_nums, static_names = self.static
        if not (nums or names or static_nums or static_names):
            return fast

        def checked(*args: Any, **kwargs: Any) -> Any:
            try:
                for i in static_nums:
                    if i < len(args) and (told := wrap_static(args[i])) is not args[i]:
                        args = (*args[:i], told, *args[i + 1 :])
                for name in static_names:
                    if name in kwargs:
                        kwargs[name] = wrap_static(kwargs[name])
                out = fast(*args, **kwargs)
            except (ValueError, TypeError) as e:
                given = unwrap_static(args, kwargs)
                if is_double_donation(e):
                    raise donated_twice(*given, self.spec.name) from None
                check_hashable(self.static, *given, self.spec.name)
                raise
            donated = [*(args[i] for i in nums if i < len(args)), *map(kwargs.get, names)]
            if donated:
                xla.release(xla.registry.flatten(donated)[0])
            return out

        return checked

    # ------------------------------------------------------------------------------------------------------ calling
    def again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool] | None:
        """Answer a call like the last one, if C++ cannot; None for another call."""
        if self.repeated is None or not self.traces or jit_is_disabled():  # `clear_caches` empties the traces
            return None
        return self.repeated.answer(args, kwargs)

    def miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """Handle a call whose signature C++ has not seen, or with an argument of a type that it does not know."""
        if self.tiers is not None:
            self.tiers.misses += 1
        if self.static.nums or self.static.names:
            args, kwargs = unwrap_static(args, kwargs)
        if jit_is_disabled():
            return self.fun(*args, **kwargs), None, True
        call = FlatCall(self.static, args, kwargs)
        if self.follows_paths:
            answer = self.followed().first(call)
            if answer is not None:
                return answer
        return self.answer(call)

    @property
    def follows_paths(self) -> bool:
        """True if Python control flow that depends on values is followed."""
        return (self.control_flow or compilation.control_flow) == "paths"

    def answer(self, call: FlatCall, paired: bool = False) -> tuple[Any, Any, bool]:
        """Answer a call of a function that one trace describes; `paired`: with None beside the result."""
        pair = (lambda out: (out, None)) if paired else lambda out: out
        traced = self.traced(call)
        if call.traced() or any(isinstance(c, Tracer) for c in traced.consts):
            given = operands(call)
            if self.shardings is not None:
                given = self.shardings.constrain_arguments(call, given)
            outs = apply(traced.jaxpr, traced.consts, given, self.spec)
            if self.shardings is not None:
                outs = self.shardings.constrain_results(traced, outs)
            return pair(traced.out_tree.unflatten(outs)), None, True
        first = not traced.programs
        program = self.program(traced, call)
        results = program.run(call.leaves) if program.quick is None else self.watch().run(program, call.leaves)
        if first:
            dtype_origins.follow(call.leaves, results)
        out = pair(traced.out_tree.unflatten(results))
        # C++ would narrow an int to 32 bits without looking: such calls stay in Python, where each is checked.
        by_hand = any(type(a) in CHECKED for a in call.leaves)
        tree = xla.structure(pair(traced.out_tree.unflatten([0] * len(results)))) if paired else traced.out_tree
        self.repeated = None
        if program.comes_to_python and not paired:
            from functorch_like.transforms import repeated_call  # few programs have several devices

            self.repeated = repeated_call.remember(call, program, traced.out_tree)
        return out, None if by_hand else program.fastpath(tree), False

    def watch(self) -> TierWatch:
        """The measurement of the programs in the quick tier."""
        if self.tiers is None:
            from functorch_like.transforms.tier_watch import TierWatch  # the disk has the last tier of most programs

            self.tiers = TierWatch(self)
        return self.tiers

    def compiled_before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program | None:
        """Return the program that runs for arguments; None if there is none yet."""
        call = FlatCall(self.static, *unwrap_static(args, kwargs))
        traced = self.traces.get(self.key(call))
        return None if traced is None else traced.programs.get(self.program_key(traced, call))

    def followed(self) -> Any:
        """The paths through the function."""
        if self.branches is None:
            from functorch_like.transforms.paths.calls import Paths  # few functions need them

            self.branches = Paths(self, self.max_paths)
        return self.branches

    def serve(self, function: Callable[..., Any]) -> None:
        """Call `function` from now on: a function with guards looks at their values after each call."""
        self.public._function = nesting.with_room(self.checked(function))

    def key(self, call: FlatCall) -> Any:
        """The key of a call's trace."""
        return call.key, self.static, self.donated(call), self.spec

    def traced(self, call: FlatCall, path: Any = None) -> Traced:
        """The trace for a call's signature; made anew where the function closes over traced values.

        `path` is a trace that follows Python control flow. With guards it is no trace for all arguments, and not kept.
        """
        key = self.key(call)
        if self.branches is not None and path is None and key in self.branches.served:
            return self.branches.served[key]
        through: dict[str, Any] = {} if path is None else {"trace": path, "through": path.framed}
        if self.control_flow == "error":
            through = {"trace": RefusingTrace(f"jit({self.spec.name})", state.trace)}
        elif follower(state.trace) is not None:  # its conditions may be followed here, and are refused elsewhere
            key = (*key, "followed")
        found = self.traces.get(key)
        if found is None:
            found = Traced(self.fun, call, self.spec, donated=self.donated(call), **through)
            if events.heard():
                why = recompile_reasons.difference(
                    call.key, [k[0] for k in self.traces]
                ) or recompile_reasons.first_time(self.fun)
                size = f"{len(found.jaxpr.equations)} equations"
                events.tell("trace", self.spec.name, found.seconds, why=why, size=size, traced=found)
            recompile_reasons.remember(self.fun)
            if not any(isinstance(c, Tracer) for c in found.consts) and not (path is not None and path.guards):
                self.traces.keep(key, found, _MOST_TRACES)
        return found

    def whole(self, call: FlatCall) -> Traced:
        """The trace for a call's signature; of paths, of all of them together.

        Raises:
            ConcretizationError: where not all paths can be known.
        """
        return self.followed().traced(call) if self.follows_paths else self.traced(call)

    def donated(self, call: FlatCall) -> tuple[bool, ...]:
        """Return for each leaf whether it is donated."""
        if not (self.donate.nums or self.donate.names):
            return ()
        args, kwargs = call.tree.unflatten(range(len(call.leaves)))
        given = [a for i, a in enumerate(args) if i in self.donate.nums]
        given += [v for k, v in kwargs.items() if k in self.donate.names]
        chosen = set(xla.flatten(given)[0])
        return tuple(i in chosen for i in range(len(call.leaves)))

    def program(self, traced: Traced, call: FlatCall) -> Program:
        """The compiled program for the place of the arguments and the kinds of numbers among them."""
        key = self.program_key(traced, call)
        found = traced.programs.get(key)
        if found is None and (pending := traced.pending.get(key)) is not None:
            pending.result()  # `warmup` compiles it
            found = traced.programs.get(key)
        if found is None:
            for leaf in call.leaves:
                if isinstance(leaf, ShapeDtypeStruct):
                    raise DtypeError(f"{leaf!r} has no data to compute with", fix="pass an array, or use .lower(...)")
            if events.heard() and traced.programs:
                why = recompile_reasons.of_program(key, traced.programs, traced.in_tree)
                events.tell("program", self.spec.name, why=why)
            found = self.compile(traced, call, key, tiered=self.shardings is None and not self.follows_paths)
        return found

    def program_key(self, traced: Traced, call: FlatCall) -> tuple[Any, ...]:
        """The key of a program among those of its trace; a `ShapeDtypeStruct` stands for an array."""
        kinds = tuple(ArrayImpl if type(a) in _ARRAYS else type(a) for a in call.leaves)
        committed = any(
            a._committed if type(a) is ArrayImpl else type(a) is ShapeDtypeStruct and a.sharding is not None
            for a in call.leaves
        )
        if self.shardings is not None and not committed:
            committed = self.shardings.name_a_place(traced, call)
        return (self.place(traced, call), kinds, committed)

    def compile(self, traced: Traced, call: FlatCall, key: tuple[Any, ...], tiered: bool = False) -> Program:
        """Compile and keep the program of a key; `tiered`: in the quick tier, if that is worth it."""
        # Ctrl-C cannot stop XLA. So the program is kept before it arrives, and the next call has it.
        with nullcontext() if self.spec.mode == "max-autotune" else held:
            found = traced.programs[key] = Program(
                traced.jaxpr,
                traced.consts,
                call.leaves,
                name=self.spec.name,
                donated=traced.donated or None,
                keep_unused=self.spec.keep_unused,
                options=dict(self.spec.options) or None,
                mode=self.spec.mode,
                device=key[0],
                committed=key[2],
                tiered=tiered,
            )
        return found

    def place(self, traced: Traced, call: FlatCall) -> Any:
        """The device, or `Partitioning`, of a call."""
        return device_for(call.leaves) if self.shardings is None else self.shardings.place(traced, call)

    # ------------------------------------------------------------------------------------------------------ looking
    @api_boundary.public
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace for these arguments (arrays or `ShapeDtypeStruct`s) without compiling."""
        check_hashable(self.static, args, kwargs, self.spec.name)
        call = FlatCall(self.static, args, kwargs, abstract=True)
        traced = self.whole(call)
        place = self.place(traced, call)
        return traced if isinstance(place, xla.Device) else traced.placed(place)

    @api_boundary.public
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower for these arguments (arrays or `ShapeDtypeStruct`s)."""
        return self.trace(*args, **kwargs).lower()

    @api_boundary.public
    def eval_shape(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """The result's pytree, of `ShapeDtypeStruct`, without compiling."""
        return self.trace(*args, **kwargs).out_info

    @api_boundary.public
    def warmup(self, *specs: tuple[object, ...], wait: bool = True) -> list[Future[None]]:
        """Compile ahead of calls, for several signatures at a time; see `functorch_like.typing.Jitted`."""
        from functorch_like.transforms.warmup import compile_ahead

        return compile_ahead(self, specs, wait)

    @api_boundary.public
    def paths(self) -> Any:
        """The paths that the function has taken, as an object that prints as a tree for each signature."""
        from functorch_like.transforms.paths.looking import PathsReport

        return PathsReport(self.spec.name, self.branches)

    @api_boundary.public
    def learn(self, *args: Any, **kwargs: Any) -> Any:
        """Trace the paths of these arguments, and those on the other sides of their conditions, without compiling."""
        from functorch_like.transforms.paths.learning import learn

        learn(self.followed(), FlatCall(self.static, args, kwargs))
        return self.paths()

    @api_boundary.public
    def optimised(self) -> None:
        """Wait until the programs compiled so far are in their last tier; see `functorch_like.typing.Jitted`."""
        if self.tiers is not None:
            self.tiers.finish()

    def clear_cache(self) -> None:
        """Forget all traces and programs of this function."""
        self.traces.clear()
        self.fast._clear_cache()
        if self.branches is not None:
            self.branches.clear()
        if self.tiers is not None:
            self.tiers.forget()


@transformation
def make_jaxpr(
    fun: Callable[..., object],
    static_argnums: int | Sequence[int] | None = None,
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that returns the jaxpr of `fun` for given arguments, as text to read or an object to look into.

    Args:
        fun: takes and returns pytrees of arrays.
        static_argnums: positions of arguments that are not traced.
        axis_env: names of axes and their sizes, for collectives over axes that nothing in `fun` maps.
        return_shape: return shapes and dtypes of the results too.

    Returns:
        A function of `fun`'s arguments giving a `Jaxpr`, or a pair with the tree of `ShapeDtypeStruct`s.

    >>> import functorch_like.numpy as fnp
    >>> print(make_jaxpr(fnp.sin)(1.0))  # doctest: +ELLIPSIS
    def sin(a: f32[]):  # traced by make_jaxpr
        b: f32[] = sin(a)...
        return b
    """
    check_callable(fun, "make_jaxpr")
    static = resolve_argnums(fun, static_argnums, None)
    name = name_of(fun)

    @api_boundary.public
    def made(*args: Any, **kwargs: Any) -> Jaxpr | tuple[Jaxpr, Any]:
        call = FlatCall(static, args, kwargs, abstract=True)
        with ExitStack() as stack:
            for axis_name, size in axis_env or ():
                stack.enter_context(named_axis(axis_name, operator.index(size)))
            traced = Traced(fun, call, CallSpec(name), origin="traced by make_jaxpr", trace_name=f"make_jaxpr({name})")
        return (traced.jaxpr, traced.out_info) if return_shape else traced.jaxpr

    return made


@api_boundary.public
def typeof(x: ArrayLike | ShapeDtypeStruct) -> ShapedArray:
    """The type of an array, traced or not, or of a number: its shape, dtype and whether it is weakly typed.

    Args:
        x: an array, a NumPy array or a number.

    Returns:
        A `ShapedArray`.

    Raises:
        DtypeError: for anything else.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.typeof(fnp.ones(3)), ft.typeof(1).weak_type
    (f32[3], True)
    """
    return x.aval if isinstance(x, ShapeDtypeStruct) else argument_aval(x)


def _instance(x: Any) -> Any:
    """Something of the shape and dtype that a `ShapeDtypeStruct` among results describes."""
    return zeros(x.aval) if isinstance(x, ShapeDtypeStruct) else x


@api_boundary.public
def eval_shape(fun: Callable[..., object], *args: PyTree, **kwargs: PyTree) -> Any:
    """Shapes and dtypes of the results of `fun`, without computing.

    Args:
        fun: takes and returns pytrees of arrays.
        args: arrays, numbers or `ShapeDtypeStruct`s.
        kwargs: likewise.

    Returns:
        The results' pytree, of `ShapeDtypeStruct`.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> ft.eval_shape(fnp.matmul, ft.ShapeDtypeStruct((3, 4), "float32"), ft.ShapeDtypeStruct((4,), "float32"))
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    call = FlatCall(Static((), ()), args, kwargs, abstract=True)
    name = name_of(fun)

    def described(*args: Any, **kwargs: Any) -> Any:
        return tree.map(_instance, fun(*args, **kwargs))

    return Traced(described, call, CallSpec(name), trace_name=f"eval_shape({name})").out_info
