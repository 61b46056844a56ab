"""`jit`: compile a function with XLA, once for each signature of its arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from functorch_like.backends.xla import compile_options
from functorch_like.calling import api_boundary
from functorch_like.calling.call_signature import (
    resolve_argnums,
)
from functorch_like.calling.traced_function import check_callable
from functorch_like.calling.type_variables import P, R
from functorch_like.compiler.option_rules import MODES
from functorch_like.errors import ArgumentError, nearest
from functorch_like.primitives.higher_order.call import CallSpec
from functorch_like.source_info import name_of
from functorch_like.transforms.disable_jit import jit_is_disabled
from functorch_like.transforms.jit_state import JitState

if TYPE_CHECKING:
    from functorch_like.typing import Jitted, PyTree


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
    settings. From then on the compiled program runs without Python.

    Args:
        fun: takes and returns pytrees of arrays. Left out, `jit` returns a decorator.
        static_argnums: positions of arguments that are compiled in; their values must be hashable.
        static_argnames: the same by name. A parameter given either way is static however it is passed.
        donate_argnums: positions of arguments whose memory the results may take; such an array cannot be used again.
        donate_argnames: the same by name.
        keep_unused: keep arguments that the function never reads as parameters of the program.
        inline: inside another traced function, put the body in place instead of a call.
        compiler_options: options of XLA by name; they take precedence over those of `mode` and of settings.
        mode: how compile options are chosen. "default": by a rule on the program's equations. "fast-compile": to
            compile sooner, into a slower program. "reduce-overhead": on GPUs, kernels are launched as one graph; on
            CPUs the same as "default", which already dispatches calls without Python. "max-autotune": the
            program is compiled in several ways at its first call, they are timed on the arguments, and the fastest
            is kept and remembered on disk; takes seconds.
        in_shardings: how arguments are split over a mesh: one sharding for all, or a tuple with a prefix pytree for
            each positional argument that is not static. Entries are NamedShardings, PartitionSpecs within
            `ft.use_mesh`, or None, the default: an argument that `device_put` has placed stays as it is, and the
            compiler places the others.
        out_shardings: how results are split, as a prefix pytree; None leaves it to the compiler. Inside of another
            traced function both are constraints.
        control_flow: treatment of Python control flow that depends on values, `if x > 0` or `int(n)`. "error": it is
            refused. "paths": each path through the function is traced, and checked by the values it depends on; see
            docs/control_flow.md. None: the value of `backends.compilation.control_flow`, "error" by default.
        max_paths: how many paths a signature may have.
        fullgraph: PyTorch's name for control_flow="error".
        buckets: for arguments with a varying number of rows, the axis of rows by the argument's name: {"x": 0}. They
            are padded to the size of a bucket, and one program serves all numbers of rows in it; operations that would
            read the padding are masked, and those that have no mask refused. See docs/control_flow.md.
        bucket_sizes: sizes of the buckets; powers of two if None.

    Returns:
        The compiled function, with `.trace(...)`, `.lower(...)`, `.eval_shape(...)`, `.warmup(...)` and
        `.clear_cache()`; of paths, `.paths()` and `.learn(...)`.

    Raises:
        ArgumentError: for positions or names `fun` does not have; at the call, for unhashable static values.
        ConcretizationError: at the call, where `fun` needs the value of a traced argument.
        ShapeError: at the call, where a sharding does not divide an argument or result; the message names it.
        DeviceError: at the call, for arguments on different devices.
        UnsupportedError: at the call, for an operation on rows of `buckets` that has no mask; the message names it.

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
        fix = f"use one of {', '.join(MODES)}"
        if mode == "max-autotune-no-cudagraphs":  # a mode of torch.compile
            fix = "use 'max-autotune', which keeps graphs of kernels only where they are faster"
        raise ArgumentError(f"jit has no mode {mode!r}{nearest(mode, MODES)}", fix=fix)
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
        raise ArgumentError("jit got bucket_sizes without buckets", fix='write buckets={"x": 0}')
    return JitState(fun, static, donate, spec, options, jit).public


def _control_flow(control_flow: str | None, fullgraph: bool) -> str | None:
    """Check `control_flow` beside `fullgraph`, and return its value."""
    if control_flow is not None and control_flow not in ("error", "paths"):
        raise ArgumentError(f"jit got control_flow={control_flow!r}", fix="use 'error', 'paths' or None")
    if fullgraph and control_flow == "paths":
        raise ArgumentError("fullgraph=True refuses what control_flow='paths' allows", fix="give one of them")
    return "error" if fullgraph else control_flow
