"""State of a jitted function: its traces, its programs, and the calls that C++ cannot answer."""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from functorch_like.avals import ShapeDtypeStruct
from functorch_like.backends import compilation, xla
from functorch_like.backends.xla import events, host_arguments, nesting
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
    flat_call,
    unwrap_static,
    wrap_static,
)
from functorch_like.calling.pickling import Transformed
from functorch_like.calling.traced_function import operands
from functorch_like.compiler.placement import device_for
from functorch_like.compiler.program import Program
from functorch_like.core import ArrayImpl, Tracer, state
from functorch_like.errors import DtypeError, FtError
from functorch_like.interrupts import all_held
from functorch_like.ir import dtype_origins
from functorch_like.ir.trace_to_jaxpr import CapturedRefs, RefusingTrace, follower
from functorch_like.primitives.higher_order.call import CallSpec, apply
from functorch_like.transforms import compile_notices, recompile_reasons, stale_programs
from functorch_like.transforms.disable_jit import jit_is_disabled
from functorch_like.transforms.jit_stages import Lowered, Traced

if TYPE_CHECKING:
    from concurrent.futures import Future

    from functorch_like.transforms.tier_watch import TierWatch
    from functorch_like.typing import PyTree

#: Traces by function, so that `jit(f)` made anew does not trace `f` again. They die with the function.
_TRACES: weakref.WeakKeyDictionary[Any, Cache[Any, Traced]] = weakref.WeakKeyDictionary()
_MOST_TRACES = MOST_SIGNATURES
_ARRAYS = (ArrayImpl, ShapeDtypeStruct)


class JitState:
    """The state behind one jitted function.

    Args:
        fun: the function.
        static: the arguments that are part of the key instead of being traced.
        donate: the arguments whose memory the results may take.
        spec: parameters of its calls inside of other functions.
        options: of `jit`, by name.
        jit: the function `jit`, by which a pickled function is made again.

    Attributes:
        public: the function that users call.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        static: Static,
        donate: Static,
        spec: CallSpec,
        options: dict[str, Any],
        jit: Callable[..., Any],
    ) -> None:
        self.fun, self.static, self.donate, self.spec = fun, static, donate, spec
        self.options, self.jit = options, jit
        self.control_flow, self.max_paths = options["control_flow"], options["max_paths"]
        self.branches: Any = None  # its paths, once there is Python control flow to follow
        self.shardings: Any = None
        self.tiers: TierWatch | None = None  # measures programs before their last tier, once there was one
        self.refs: Any = None  # its calls with Refs, once there was one
        self.takes_refs = True
        self.repeated: Any = None  # the last call, where C++ cannot run the program alone
        if options["in_shardings"] is not None or options["out_shardings"] is not None:
            from functorch_like.sharding.jit_shardings import JitShardings  # few programs have meshes

            self.shardings = JitShardings(spec.name, options["in_shardings"], options["out_shardings"])
        try:
            self.traces = _TRACES.setdefault(fun, Cache())
        except TypeError:  # not hashable, or no weak references: bound methods of such, callables with __eq__
            self.traces = Cache()
        self.fast = xla.function(
            spec.name,
            fun,
            self.miss,
            self.again,
            static_argnums=static.nums,
            static_argnames=static.names,
            checks_order=self.check_order,
        )
        self.served: Callable[..., Any] = self.fast
        made_by = (jit, (fun,), options)
        self.public: Any = Transformed(self.checked(self.fast), *made_by)
        functools.update_wrapper(self.public, fun, updated=())
        self.public.trace, self.public.lower = self.trace, self.lower
        self.public.eval_shape = self.eval_shape
        self.public.clear_cache, self.public.warmup = self.clear_cache, self.warmup
        self.public.paths, self.public.learn = self.paths, self.learn
        self.public.optimised = self.optimised
        self.public._cache_size = self._cache_size

    def checked(self, fast: Any) -> Any:
        """Wrap the C++ function: add the types inside of static values, errors for unhashable ones, and donation.

        A donated array is released, so that using it again raises the package's error instead of C++'s.
        """
        nums, names = self.donate.nums, self.donate.names
        static_nums, static_names = self.static
        if not (nums or names or static_nums or static_names):
            return fast

        def checked(*args: Any, **kwargs: Any) -> Any:
            try:
                for i in static_nums:
                    if i < len(args) and (static_value := wrap_static(args[i])) is not args[i]:
                        args = (*args[:i], static_value, *args[i + 1 :])
                for name in static_names:
                    if name in kwargs:
                        kwargs[name] = wrap_static(kwargs[name])
                out = fast(*args, **kwargs)
            except (ValueError, TypeError) as e:
                plain = unwrap_static(args, kwargs)
                if is_double_donation(e):
                    raise donated_twice(*plain, self.spec.name) from None
                check_hashable(self.static, *plain, self.spec.name)
                raise
            donated = [*(args[i] for i in nums if i < len(args)), *map(kwargs.get, names)]
            if donated:
                xla.release(xla.registry.flatten(donated)[0])
            return out

        return checked

    # ------------------------------------------------------------------------------------------------------ calling
    def again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool] | None:
        """Answer a call with the signature of the last one, where C++ cannot run the program; None for another call."""
        # `clear_caches` empties the traces.
        if self.repeated is None or not self.traces or jit_is_disabled() or stale_programs.CHECKED.value:
            return None
        return self.repeated.answer(args, kwargs)

    def miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """Handle a call that C++ passes to Python: of a new signature, or with an argument of another type."""
        if self.tiers is not None:
            self.tiers.misses += 1
        if self.static.nums or self.static.names:
            args, kwargs = unwrap_static(args, kwargs)
        if jit_is_disabled():
            return self.fun(*args, **kwargs), None, True
        if self.refs is not None:
            return self.refs.answer(args, kwargs)
        try:
            call = flat_call(self.fun, self.static, args, kwargs)
        except DtypeError as e:
            failed: Any = e
        else:
            try:
                if self.follows_paths:
                    answer = self.followed().first(call)
                    if answer is not None:
                        return answer
                return self.answer(call)
            except CapturedRefs as e:
                failed = e
        return self.with_refs(failed, args, kwargs)

    def with_refs(self, failed: FtError, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        """Answer a call that failed because it has Refs.

        Raises:
            FtError: the failure itself, if it had another cause.
        """
        from functorch_like.transforms.jit_refs import RefCalls, is_about_refs  # few functions have them

        if not self.takes_refs or not (isinstance(failed, CapturedRefs) or is_about_refs(self.static, args, kwargs)):
            raise failed
        self.refs = RefCalls(self)
        return self.refs.answer(args, kwargs)

    @property
    def follows_paths(self) -> bool:
        """True if Python control flow that depends on values is followed."""
        return (self.control_flow or compilation.control_flow) == "paths"

    def answer(self, call: FlatCall, paired: bool = False) -> tuple[Any, Any, bool]:
        """Answer a call of a function without guards; with `paired`, the result comes in a pair with None."""
        pair = (lambda out: (out, None)) if paired else lambda out: out
        traced = self.traced(call)
        is_checked = stale_programs.CHECKED.value
        if is_checked and follower(state.trace) is None:
            again = Traced(self.fun, call, self.spec, donated=self.donated(call))
            stale_programs.check(self.fun, self.spec.name, traced, again)
        if call.traced() or any(isinstance(c, Tracer) for c in traced.consts):
            flat_args = operands(call)
            if self.shardings is not None:
                flat_args = self.shardings.constrain_arguments(call, flat_args)
            outs = apply(traced.jaxpr, traced.consts, flat_args, self.spec)
            if self.shardings is not None:
                outs = self.shardings.constrain_results(traced, outs)
            return pair(traced.out_tree.unflatten(outs)), None, True
        first = not traced.programs
        program = self.program(traced, call)
        results = program.run(call.leaves) if program.improvement is None else self.watch().run(program, call.leaves)
        if first:
            dtype_origins.follow(call.leaves, results)
        out = pair(traced.out_tree.unflatten(results))
        # C++ would narrow an int to 32 bits without looking: such calls stay in Python, where each is checked.
        by_hand = is_checked or call.narrowed or any(type(a) in CHECKED for a in call.leaves)
        tree = xla.structure(pair(traced.out_tree.unflatten([0] * len(results)))) if paired else traced.out_tree
        self.repeated = None
        if program.comes_to_python and not paired:
            from functorch_like.transforms import repeated_call  # few programs have several devices

            self.repeated = repeated_call.remember(call, program, traced.out_tree)
        return out, None if by_hand else program.fastpath(tree, handles_failures=True), False

    def watch(self) -> TierWatch:
        """The measurement of the programs before their last tier."""
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
        """Install the function that users' calls run: measured, or with guards that compare values after the call."""
        self.served = function
        self.public._function = nesting.with_room(self.checked(function))

    def check_order(self) -> bool:
        """Check the byte order of NumPy arguments in each call from now on; False if C++ must not read any."""
        if self.donate.nums or self.donate.names:  # a result could take the array's own memory
            return False
        self.public.check = host_arguments.check_order
        return True

    def key(self, call: FlatCall) -> Any:
        """The key of a call's trace."""
        return call.key, self.static, self.donated(call), self.spec

    def traced(self, call: FlatCall, path: Any = None) -> Traced:
        """The trace for a call's signature; made anew where the function closes over traced values.

        `path` is a trace that follows Python control flow. With guards it is valid for some arguments only, and not
        kept.
        """
        if self.shardings is not None:
            self.shardings.type_arguments(call)
        key = self.key(call)
        if self.branches is not None and path is None and key in self.branches.served:
            return self.branches.served[key]
        through: dict[str, Any] = {} if path is None else {"trace": path, "through": path.framed}
        if self.control_flow == "error":
            through = {"trace": RefusingTrace(f"jit({self.spec.name})", state.trace)}
        elif follower(state.trace) is not None:  # its conditions may be followed here, and are refused elsewhere
            key = (*key, "followed")
        trace = self.traces.get(key)
        if trace is None or (key[-1] == "followed" and stale_programs.CHECKED.value):
            trace = Traced(self.fun, call, self.spec, donated=self.donated(call), **through)
            if events.has_listeners():
                why = recompile_reasons.difference(
                    call.key, [k[0] for k in self.traces]
                ) or recompile_reasons.first_time(self.fun)
                size = f"{len(trace.jaxpr.equations)} equations"
                events.emit("trace", self.spec.name, trace.seconds, why=why, size=size, traced=trace)
            recompile_reasons.remember(self.fun)
            compile_notices.captured(self.fun, self.spec.name, trace.consts)
            if not any(isinstance(c, Tracer) for c in trace.consts) and not (path is not None and path.guards):
                self.traces.keep(key, trace, _MOST_TRACES)
        return trace

    def whole(self, call: FlatCall) -> Traced:
        """The trace for a call's signature; where control flow is followed, the trace of all paths.

        Raises:
            ConcretizationError: where not all paths can be known.
        """
        return self.followed().traced(call) if self.follows_paths else self.traced(call)

    def donated(self, call: FlatCall) -> tuple[bool, ...]:
        """Return for each leaf whether it is donated."""
        if not (self.donate.nums or self.donate.names):
            return ()
        # By the sizes of the parts: nodes of the user's may take nothing but arrays in place of their leaves.
        args, kwargs = call.tree.children()
        names = kwargs.node_data()[1]
        parts = [(part, i in self.donate.nums) for i, part in enumerate(args.children())]
        parts += [(part, k in self.donate.names) for k, part in zip(names, kwargs.children(), strict=True)]
        return tuple(donated for part, donated in parts for _ in range(part.num_leaves))

    def program(self, traced: Traced, call: FlatCall) -> Program:
        """The compiled program for the place of the arguments and the kinds of numbers among them."""
        key = self.program_key(traced, call)
        result = traced.programs.get(key)
        if result is None and (pending := traced.pending.get(key)) is not None:
            pending.result()  # `warmup` compiles it
            result = traced.programs.get(key)
        if result is None:
            for leaf in call.leaves:
                if isinstance(leaf, ShapeDtypeStruct):
                    raise DtypeError(f"{leaf!r} has no data to compute with", fix="pass an array, or use .lower(...)")
            if events.has_listeners() and traced.programs:
                why = recompile_reasons.of_program(key, traced.programs, traced.in_tree)
                events.emit("program", self.spec.name, why=why)
            result = self.compile(traced, call, key, tiered=self.shardings is None and not self.follows_paths)
        return result

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
        started = time.perf_counter()
        # Ctrl-C cannot stop XLA. So the program is kept before it arrives, and the next call has it.
        with nullcontext() if self.spec.mode == "max-autotune" else all_held:
            result = traced.programs[key] = Program(
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
        seconds = traced.seconds + time.perf_counter() - started
        others = (k[0] for k in reversed(self.traces) if k[0] != call.key)  # read where a notice is issued
        compile_notices.compiled(self.fun, self.spec.name, call, others, seconds)
        return result

    def place(self, traced: Traced, call: FlatCall) -> Any:
        """The device, or `Partitioning`, of a call."""
        return device_for(call.leaves) if self.shardings is None else self.shardings.place(traced, call)

    # ------------------------------------------------------------------------------------------------------ looking
    @api_boundary.public
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace for these arguments (arrays or `ShapeDtypeStruct`s) without compiling."""
        check_hashable(self.static, args, kwargs, self.spec.name)
        call = FlatCall(self.static, args, kwargs, abstract=True)
        traced = self.whole(call).under(state.trace)
        place = self.place(traced, call)
        return traced if place is xla.default_device() else traced.placed(place)

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
        if self.refs is not None:
            self.refs.optimised()

    def _cache_size(self) -> int:
        """Return the number of signatures that were traced; a private name that programs for JAX use."""
        return len(self.traces)

    def clear_cache(self) -> None:
        """Forget all traces and programs of this function."""
        self.traces.clear()
        self.fast._clear_cache()
        self.refs = None
        if self.branches is not None:
            self.branches.clear()
        if self.tiers is not None:
            self.tiers.forget()
