"""Compile programs for GPUs on a machine without one: `python -m functorch_like.testing.aot --target h200`.

It compiles each primitive's samples, programs that show what settings change, and training steps. A program fails if
XLA refuses it, for example because no plugin registers a custom call. It also fails if the compiled program does not
show the setting. Nothing runs: the report states whether programs compile, which kernels and libraries they call, and
how much memory they take. XLA chooses kernels without timing them here, and may choose others on a GPU.

It requires `pip install 'functorch_like[gpu-aot]'`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import functorch_like as ft
from functorch_like import backends, checkpoint_policies, core, dtypes, lax, nn
from functorch_like import numpy as fnp
from functorch_like.backends.xla import compile_only, gpu_targets
from functorch_like.compiler.lower import lower
from functorch_like.core import Primitive, SampleInput, aval_of
from functorch_like.errors import CompileError, DeviceError, FtError, UnsupportedError, bytes_text
from functorch_like.examples import training, transformer
from functorch_like.examples.models import MODELS
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.__main__ import builtin_primitives
from functorch_like.sharding import AbstractMesh

_HIGHEST = r"operand_precision=\{highest,highest\}"  # the form of float32 without TF32 in HLO
OK, REFUSED, FAILED = "ok", "refused", "failed"


class Result(NamedTuple):
    """Outcome of one program.

    Attributes:
        group: "primitives", "settings" or "steps".
        name: of the program.
        status: OK; REFUSED, where the package itself raises an error for GPUs; or FAILED.
        seconds: of compiling.
        program: what was compiled, or None.
        message: what is wrong, or what was seen.
    """

    group: str
    name: str
    status: str
    seconds: float
    program: compile_only.Program | None
    message: str = ""


@dataclasses.dataclass(frozen=True)
class Case:
    """A program to compile.

    Attributes:
        group, name: of the result.
        trace: makes the jaxpr.
        flags: settings while it is traced, lowered and compiled.
        shown: patterns that the optimised HLO must contain.
        absent: patterns that it must not contain.
        options: of XLA.
        mesh: that the program is split over; None for one device.
    """

    group: str
    name: str
    trace: Callable[[], Any]
    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    shown: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    mesh: Any = None


# ---------------------------------------------------------------------------------------------------------- primitives
def primitives() -> Iterable[Case]:
    """All samples of all primitives."""
    for primitive in builtin_primitives():
        for number, sample in enumerate(primitive.samples()):
            yield Case(
                "primitives",
                f"{primitive.name}[{number}]",
                lambda primitive=primitive, sample=sample: _trace_sample(primitive, sample),
            )


def _trace_sample(primitive: Primitive, sample: SampleInput) -> Any:
    avals = [aval_of(x) if not hasattr(x, "weak_type") else x for x in sample.operands]
    apply = lambda *xs: (lambda out: list(out) if primitive.multiple_results else [out])(
        primitive(*xs, **sample.params)
    )
    return stage(apply, avals, name=primitive.name, parent=core.EVALUATE)[0]


# ------------------------------------------------------------------------------------------------------------ settings
def _traced(fun: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    return lambda: ft.jit(fun).trace(*args).jaxpr


def settings() -> Iterable[Case]:
    """Programs that show in their HLO what a setting changes."""
    f32 = lambda *shape: ft.ShapeDtypeStruct(shape, np.float32)
    bf16 = lambda *shape: ft.ShapeDtypeStruct(shape, dtypes.bfloat16)
    i32 = lambda *shape: ft.ShapeDtypeStruct(shape, np.int32)
    product = _traced(lambda x, y: x @ y, f32(512, 512), f32(512, 512))
    libraries = {"xla_gpu_enable_triton_gemm": False}
    of_cublas = r'"precision_config":\{"operand_precision":\["HIGHEST","HIGHEST"\]'
    case = lambda name, trace, flags=None, shown=(), absent=(), options=None: Case(
        "settings", name, trace, flags or {}, shown, absent, options or {}
    )
    yield case("matmul float32", product, shown=(_HIGHEST,))
    yield case("matmul TF32", product, {"cuda_matmul_fp32_precision": "tf32"}, absent=(_HIGHEST,))
    yield case("matmul float32, cuBLAS", product, None, (r"__cublas", of_cublas), (), libraries)
    yield case(
        "matmul TF32, cuBLAS", product, {"cuda_matmul_fp32_precision": "tf32"}, (r"__cublas",), (of_cublas,), libraries
    )
    algorithms = {
        "bf16": "bf16_bf16_f32",
        "bf16x3": "bf16_bf16_f32_x3",
        "bf16x6": "bf16_bf16_f32_x6",
        "bf16x9": "f32_f32_f32",  # XLA has no kernel for nine products
    }
    for name, text in algorithms.items():
        yield case(f"matmul {name}", product, {"cuda_matmul_fp32_precision": name}, (rf"algorithm=dot_{text}\b",))
    yield case(
        "matmul of bfloat16",
        _traced(lambda x, y: x @ y, bf16(512, 512), bf16(512, 512)),
        None,
        (r"f32\[.*dot\(bf16|dot\(",),
    )
    image, kernel = f32(8, 32, 64, 64), f32(64, 32, 3, 3)
    convolution = _traced(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), image, kernel)
    yield case("convolution float32", convolution, None, (r"__cudnn\$convForward", _HIGHEST))
    yield case("convolution TF32", convolution, {"cudnn_conv_fp32_precision": "tf32"}, (r"__cudnn\$conv",), (_HIGHEST,))
    scatter = _traced(lambda x, i, y: x.at[i].add(y), f32(100, 8), i32(50), f32(50, 8))
    yield case("scatter-add", scatter, None, (r" scatter\(",), (r" sort\(",))
    yield case(
        "scatter-add, deterministic",
        scatter,
        {"deterministic_algorithms": "on"},
        (r" sort\(", r"scatter\(.*indices_are_sorted=true, unique_indices=true"),
    )
    q = bf16(2, 512, 8, 64)
    attend = lambda form: _traced(lambda q, k, v: nn.dot_product_attention(q, k, v, implementation=form), q, q, q)
    yield case("attention, math", attend("math"))
    yield case("attention, flash", attend("flash"))
    yield case("checkpoint, offloaded", _traced(ft.grad(_deep), f32(512, 512), f32(512, 512)), None, (r"S\(5\)",))


def _deep(w: Any, x: Any) -> Any:
    """A deep network whose activations are kept in the host's memory."""
    policy = checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    layer = ft.checkpoint(lambda x, _: (fnp.tanh(x @ w), None), policy=policy)
    return (lax.scan(layer, x, None, length=8)[0] ** 2).sum()


# --------------------------------------------------------------------------------------------------------------- steps
SIZES = transformer.Sizes(words=32000, length=1024, width=1024, heads=16, layers=8)


def steps() -> Iterable[Case]:
    """Training steps: digits, and a transformer of about 133 million parameters."""
    for name, model in MODELS.items():
        yield Case("steps", f"digits, {name}", lambda model=model: _digits(model))
    make = lambda dtype: lambda: _transformer(dtype)
    tf32 = {"cuda_matmul_fp32_precision": "tf32"}
    yield Case("steps", "transformer, float32", make("float32"), shown=(_HIGHEST,))
    yield Case("steps", "transformer, TF32", make("float32"), tf32, shown=(r" dot\(",), absent=(_HIGHEST,))
    yield Case("steps", "transformer, bfloat16", make("bfloat16"), shown=(r"ROOT %dot\S* = bf16\[",))


def _digits(model: Any) -> Any:
    state = ft.eval_shape(lambda: training.start(model, 0))
    images, labels = ft.ShapeDtypeStruct((1500, 8, 8, 1), np.float32), ft.ShapeDtypeStruct((1500,), np.int32)
    rows_of_batch, rate = ft.ShapeDtypeStruct((training.BATCH,), np.int32), ft.ShapeDtypeStruct((), np.float32)
    return ft.jit(training.train_step(model)).trace(state, images, labels, rows_of_batch, rate).jaxpr


def _transformer(dtype: str) -> Any:
    return ft.jit(transformer.train_step(SIZES)).trace(*transformer.abstract_arguments(SIZES, 8, dtype)).jaxpr


# --------------------------------------------------------------------------------------------------------------- meshes
def meshes() -> Iterable[Case]:
    """The transformer's step over meshes of GPUs, of eight on each machine."""
    for shape in ((2, 8), (16, 8)):
        mesh = AbstractMesh(shape, ("data", "model"))
        name = f"transformer, bfloat16, {shape[0]}x{shape[1]} mesh"
        yield Case("meshes", name, lambda: None, mesh=mesh)


def planned(case: Case, target: str) -> Result:
    """Compile the transformer's step for a mesh."""
    begun = time.perf_counter()
    arguments = transformer.split_arguments(SIZES, 8 * case.mesh.shape["data"], case.mesh, "bfloat16")
    try:
        step = ft.jit(transformer.train_step(SIZES), donate_argnums=0)
        plan = ft.explain(step, mesh=case.mesh, target=target)(*arguments)
    except FtError as error:
        return Result(case.group, case.name, FAILED, time.perf_counter() - begun, None, str(error))
    program = compile_only.Program(plan.text, plan.memory, 0)
    exchanges = "; ".join(
        f"{each.kind} over {' and '.join(each.axes)}, {each.count} times, {bytes_text(each.bytes)}"
        for each in plan.exchanges
    )
    return Result(case.group, case.name, OK, time.perf_counter() - begun, program, exchanges)


GROUPS: dict[str, Callable[[], Iterable[Case]]] = {
    "primitives": primitives,
    "settings": settings,
    "steps": steps,
    "meshes": meshes,
}


# ----------------------------------------------------------------------------------------------------------- compiling
def compiled(case: Case, devices: Sequence[Any]) -> Result:
    """Trace, lower and compile a case, and look for what it must show."""
    begun = time.perf_counter()
    result = lambda status, program=None, message="": Result(
        case.group, case.name, status, time.perf_counter() - begun, program, message
    )
    with backends.flags(**case.flags), contextlib.redirect_stdout(io.StringIO()):  # some samples print
        try:
            lowered = lower(case.trace(), name=case.name.partition("[")[0], platform="gpu")
            module = lowered.module
        except UnsupportedError as error:
            return result(REFUSED, message=error.reason)
        except FtError as error:
            return result(FAILED, message=str(error))
        try:
            program = compile_only.compile(module, devices, name=case.name, options=case.options)
        except CompileError as error:
            return result(FAILED, message=error.reason)
    missing = [pattern for pattern in case.shown if not re.search(pattern, program.text)]
    unwanted = [pattern for pattern in case.absent if re.search(pattern, program.text)]
    if missing or unwanted:
        message = "; ".join([*(f"not seen: {p}" for p in missing), *(f"seen: {p}" for p in unwanted)])
        return result(FAILED, program, message)
    return result(OK, program)


# --------------------------------------------------------------------------------------------------------------- report
def markdown(target: str, results: Sequence[Result]) -> str:
    """The results as a page."""
    lines = [
        f"# Programs compiled for {target.upper()} without a GPU",
        "",
        f"Written by `python -m functorch_like.testing.aot --target {target} --markdown FILE`, with jaxlib "
        f"{backends.xla.about()['versions']['jaxlib']}. Nothing ran. Kernels are chosen without timing.",
    ]
    for group in ("steps", "settings"):
        chosen = [r for r in results if r.group == group]
        if chosen:
            lines += ["", f"## {group.capitalize()}", "", *_table(chosen)]
    of_meshes = [r for r in results if r.group == "meshes"]
    if of_meshes:
        lines += ["", "## Meshes", "", "Bytes are those of one device, in one run.", ""]
        lines += ["| program | arguments | temporaries | in all | collectives |", "|---|--:|--:|--:|---|"]
        lines += [_mesh_row(r) for r in of_meshes]
    of_primitives = [r for r in results if r.group == "primitives"]
    if of_primitives:
        lines += ["", "## Primitives", "", *_primitives_table(of_primitives)]
    return "\n".join(lines) + "\n"


def _table(results: Sequence[Result]) -> list[str]:
    head = [
        "| program | arguments | temporaries | results | library calls | kernels | s |",
        "|---|--:|--:|--:|---|---|--:|",
    ]
    return head + [_row(r) for r in results]


def _row(result: Result) -> str:
    if result.program is None:
        return f"| {result.name} | {result.status}: {result.message.splitlines()[0]} | | | | | |"
    memory = result.program.memory
    sizes = " | ".join(bytes_text(memory[part]) for part in ("argument", "temp", "output"))
    calls = ", ".join(f"`{c}`" for c in result.program.calls) or "none"
    status = "" if result.status == OK else f" ({result.status}: {result.message})"
    kinds = ", ".join(result.program.fusions) or "none"
    return f"| {result.name}{status} | {sizes} | {calls} | {kinds} | {result.seconds:.1f} |"


def _mesh_row(result: Result) -> str:
    if result.program is None:
        return f"| {result.name} | failed: {result.message.splitlines()[0]} | | | |"
    sizes = " | ".join(bytes_text(result.program.memory[part]) for part in ("argument", "temp", "total"))
    return f"| {result.name} | {sizes} | {result.message} |"


def _primitives_table(results: Sequence[Result]) -> list[str]:
    by_status = {status: [r for r in results if r.status == status] for status in (OK, REFUSED, FAILED)}
    names = {r.name.partition("[")[0] for r in results}
    counts = ", ".join(f"{len(found)} {status}" for status, found in by_status.items())
    lines = [f"{len(results)} samples of {len(names)} primitives: {counts}. Those that call libraries:", ""]
    lines += ["| primitive | calls |", "|---|---|"]
    calls: dict[str, set[str]] = {}
    for result in by_status[OK]:
        if result.program is not None and result.program.calls:
            calls.setdefault(result.name.partition("[")[0], set()).update(result.program.calls)
    lines += [f"| {name} | {', '.join(f'`{c}`' for c in sorted(found))} |" for name, found in sorted(calls.items())]
    for status in (REFUSED, FAILED):
        reasons: dict[str, str] = {}
        for result in by_status[status]:
            reasons.setdefault(result.name.partition("[")[0], result.message.splitlines()[0])
        if reasons:
            lines += ["", f"{status.capitalize()}:", ""]
            lines += [f"- {name}: {reason}" for name, reason in sorted(reasons.items())]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, report, and return 1 if a program failed."""
    parser = argparse.ArgumentParser(
        prog="python -m functorch_like.testing.aot", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--target", default="h200", choices=gpu_targets.NAMES, help="the GPU (default: h200)")
    parser.add_argument("--group", action="append", choices=tuple(GROUPS), help="only these programs")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only programs with such names")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th sample of the primitives")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the results as a page")
    parser.add_argument("--verbose", action="store_true", help="print each program")
    options = parser.parse_args(arguments)
    try:
        devices = compile_only.devices(options.target)
    except DeviceError as error:
        print(error, file=sys.stderr)
        return 2
    results: list[Result] = []
    for group in options.group or GROUPS:
        cases = [case for case in GROUPS[group]() if re.search(options.only, case.name)]
        for case in cases[:: options.every] if group == "primitives" else cases:
            result = compiled(case, devices) if case.mesh is None else planned(case, options.target)
            results.append(result)
            if options.verbose or result.status == FAILED or group != "primitives":
                shown = result.message or (result.program and f"{result.program.calls} {result.program.memory}")
                print(f"{result.status:8} {group} {result.name}  {result.seconds:.1f} s  {shown}", flush=True)
    counts = {status: sum(r.status == status for r in results) for status in (OK, REFUSED, FAILED)}
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    if options.markdown is not None:
        options.markdown.write_text(markdown(options.target, results), encoding="utf-8")
    return int(bool(counts[FAILED] or not results))


if __name__ == "__main__":
    sys.exit(main())
