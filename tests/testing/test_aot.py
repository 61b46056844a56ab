"""Programs compiled for GPUs without one. Most tests need the CUDA plugin: `pip install 'functorch_like[gpu-aot]'`."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like.backends.xla import compile_only, cuda, gpu_targets, mlir
from functorch_like.errors import ArgumentError, CompileError, DeviceError
from functorch_like.testing import aot

needs_plugin = pytest.mark.skipif(cuda.find_plugin() is None, reason="the CUDA plugin is not installed")


@pytest.mark.parametrize("card", gpu_targets.NAMES)
def test_descriptions_are_whole(card):
    text = gpu_targets.description(card)
    assert text.count("{") == text.count("}") == 3
    assert f"device_memory_size: {gpu_targets.memory_size(card)}" in text and 'platform_name: "CUDA"' in text


def test_an_unknown_gpu():
    with pytest.raises(ArgumentError, match="no GPU 'h201' is described; did you mean 'h20"):
        gpu_targets.description("h201")


def test_without_the_plugin(monkeypatch, capsys):
    monkeypatch.setattr(cuda, "find_plugin", lambda: None)
    with pytest.raises(DeviceError, match="needs the CUDA plugin, which is not installed"):
        compile_only.devices("h200")
    assert aot.main(["--target", "h100"]) == 2
    assert "pip install 'functorch_like[gpu-aot]'" in capsys.readouterr().err


PROGRAM = compile_only.Program(
    'fusion(), kind=kLoop, custom_call_target="__cudnn$conv" custom_call_target="__cudnn$conv" __triton_gemm',
    {"argument": 2048, "output": 1 << 20, "temp": 0, "alias": 0},
    100,
)


def test_what_is_read_from_a_program():
    assert PROGRAM.calls == ["__cudnn$conv"] and PROGRAM.fusions == ["Loop", "__triton_gemm"]


def test_the_page():
    page = aot.markdown(
        "h200",
        [
            aot.Result("steps", "digits", aot.OK, 1.5, PROGRAM),
            aot.Result("settings", "tf32", aot.FAILED, 1.0, PROGRAM, "not seen: x"),
            aot.Result("primitives", "sin[0]", aot.OK, 0.1, PROGRAM),
            aot.Result("primitives", "geev[0]", aot.FAILED, 0.1, None, "XLA cannot\nmore"),
            aot.Result("primitives", "check[0]", aot.REFUSED, 0.1, None, "no"),
        ],
    )
    assert "| digits | 2 KiB | 0 bytes | 1 MiB | `__cudnn$conv` | Loop, __triton_gemm | 1.5 |" in page
    assert "tf32 (failed: not seen: x)" in page
    assert "3 samples of 3 primitives: 1 ok, 1 refused, 1 failed" in page
    assert "| sin | `__cudnn$conv` |" in page and "- geev: XLA cannot\n" in page and "- check: no" in page


@needs_plugin
@pytest.mark.parametrize("name", ["matmul TF32", "matmul float32", "scatter-add, deterministic"])
def test_settings_are_seen(name):
    (case,) = [case for case in aot.settings() if case.name == name]
    found = aot.compiled(case, compile_only.devices("h200"))
    assert found.status == aot.OK, found.message


@needs_plugin
def test_a_setting_that_is_not_seen_fails():
    trace = lambda: ft.jit(lambda x: x @ x).trace(ft.ShapeDtypeStruct((64, 64), np.float32)).jaxpr
    found = aot.compiled(aot.Case("settings", "x", trace, shown=("no such text",)), compile_only.devices("h200"))
    assert found.status == aot.FAILED and "not seen: no such text" in found.message


@needs_plugin
def test_an_unknown_target_is_caught():
    text = """func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @no_such_target(%a) {api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32> }"""
    with pytest.raises(CompileError, match="no_such_target"):
        compile_only.compile(mlir.parse_module(f"module @m {{ {text} }}"), compile_only.devices("h200"), name="m")


@needs_plugin
def test_a_sample_of_the_primitives():
    devices = compile_only.devices("h200")
    found = [aot.compiled(case, devices) for case in list(aot.primitives())[::150]]
    assert [r for r in found if r.status == aot.FAILED] == []
