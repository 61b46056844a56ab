"""Displays of arrays: every dtype and state, without compiling, and in bounded time."""

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from support.markup import fits, page
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends import xla
from functorch_like.debug import array_display
from functorch_like.random import typed_keys

DTYPES = (
    "bool", "int4", "uint4", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
#: Counters of traced and compiled programs: displays make none.
MADE = ("traces", "compiles")


@pytest.mark.parametrize("shape", [(), (0, 3), (3,), (5, 7), (2,) * 8, (40, 40)])
def test_every_dtype_and_shape(shape):
    for dtype in DTYPES:
        x = fnp.asarray(np.resize(np.arange(7), shape).astype(dtype))
        before = xla.counters.snapshot()
        text, found = str(ft.inspect.array(x)), page(x)
        assert fits(text) and repr(x.aval) in text and repr(x.aval) in found.text
        after = xla.counters.snapshot()
        assert [after[name] for name in MADE] == [before[name] for name in MADE]


def test_statistics_are_those_of_numpy():
    values = np.random.default_rng(0).normal(3, 2, (50, 40)).astype("float32")
    told = dict(array_display.statistics(values))
    wide = values.astype("float64")
    assert told["range"] == f"{wide.min():.4g} to {wide.max():.4g}"
    assert told["mean"] == f"{wide.mean():.4g}, standard deviation {wide.std():.4g}"
    assert "statistics" not in told
    size = np.abs(values + 1j)
    told = dict(array_display.statistics((values + 1j).astype("complex64")))
    assert told["absolute values"].startswith(f"{size.min():.4g} to {size.max():.4g}")
    assert dict(array_display.statistics(np.arange(40) % 4 == 0))["true"] == "10 of 40 (25.0%)"


def test_what_is_not_finite_is_counted_and_left_out_of_the_range():
    values = np.arange(40, dtype="float32")
    values[3:5], values[7] = np.nan, -np.inf
    told = dict(array_display.statistics(values))
    assert told["range"] == "0 to 39"
    assert told["of these"] == "1 zero (2.50%), 2 NaN (5.00%), 1 infinite (2.50%)"
    told = dict(array_display.statistics(np.full(20, np.nan)))
    assert list(told) == ["of these"]


@pytest.mark.filterwarnings("error")
def test_large_floats_do_not_overflow():
    told = dict(array_display.statistics(np.full(20, 1.7e308)))
    assert told["mean"] == "1.7e+308, standard deviation 0"
    told = dict(array_display.statistics(np.zeros(20)))
    assert told["mean"] == "0, standard deviation 0"


def test_narrow_floats_do_not_overflow():
    told = dict(array_display.statistics(np.full(2000, 60000, "float16")))
    assert told["mean"] == "6e+04, standard deviation 0"
    told = dict(array_display.statistics(np.full(2000, 100, ml_dtypes.float8_e4m3fn)))
    assert told["range"] == "96 to 96"


def test_large_arrays_are_sampled_and_say_so():
    values = np.zeros(2**22, "float32")
    values[::2] = 1
    told = dict(array_display.statistics(values))
    assert told["statistics"] == f"of a sample of {2**18} of {2**22} elements" and told["mean"].startswith("0.5,")
    told = dict(array_display.statistics(values.reshape(2, -1).T))  # not contiguous
    assert told["statistics"] == f"of a sample of {2**15} of {2**22} elements"
    assert abs(float(told["mean"].split(",")[0]) - 0.5) < 0.01


def test_a_gibibyte():
    """Only a sample and the printed elements are read."""
    values = np.lib.stride_tricks.as_strided(np.zeros(1, "float32"), (2**28,), (0,))  # takes no memory
    shown = ft.inspect.array(values)
    assert fits(str(shown)) and "1 GiB" in str(shown) and "of a sample of" in page(shown).text


def test_large_arrays_are_not_copied_from_accelerators(monkeypatch):
    monkeypatch.setattr(array_display.xla, "to_numpy", lambda x: pytest.fail("copied"))
    gpu = SimpleNamespace(platform="gpu")
    for devices, told in (({0: gpu}, "not copied from the device"), ({0: gpu, 1: gpu}, "not copied from several")):
        place = SimpleNamespace(device_set=list(devices.values()))
        x = SimpleNamespace(is_deleted=lambda: False, nbytes=2**30, sharding=place)
        values, why = array_display.values_of(x)
        assert values is None and why.startswith(told)


def test_a_deleted_array():
    x = fnp.ones(3)
    x.delete()
    assert "donated to a computation, or deleted" in page(x).text
    assert "donated to a computation, or deleted" in str(ft.inspect.array(x))


def test_tracers():
    seen = []

    def look(x):
        seen.append((page(x).text, str(ft.inspect.array(x)), x))
        return x * 2

    ft.jit(look)(fnp.ones(3))
    ft.grad(look)(3.0)
    ft.vmap(look)(fnp.ones((2, 3)))
    assert "not known while a function is traced" in seen[0][0] and "jit(look)" in seen[0][1]
    assert "Traced value f32[], weak type" in seen[1][1] and "3." in seen[1][1]
    assert "f32[3]" in seen[2][0]
    assert "jit(look)" in page(seen[0][2]).text  # after its trace has ended


def test_a_computation_that_failed(monkeypatch):
    def fail(x):
        raise ft.errors.CompileError("the callback raised")

    monkeypatch.setattr(array_display.xla, "to_numpy", fail)
    assert "none, the computation failed: the callback raised" in page(fnp.ones(3)).text


def test_parts_in_other_processes():
    place = SimpleNamespace(
        device_set=[SimpleNamespace(platform="cpu")] * 2, is_fully_addressable=False, is_fully_replicated=False
    )
    x = SimpleNamespace(is_deleted=lambda: False, nbytes=12, sharding=place, _sharding=place)
    assert array_display.values_of(x) == (None, "parts of them belong to other processes; see x.addressable_shards")


def test_names_are_escaped():
    x = np.array(["<script>alert(1)</script>"] * 3, object)
    assert "<script>" in page(ft.inspect.array(x)).text  # as text: the parser finds no such element
    assert "<script>" not in ft.inspect.array(x)._repr_html_()


def test_many_dimensions_are_printed_short():
    text = str(ft.inspect.array(fnp.zeros((4,) * 9)))
    assert fits(text) and text.count("\n") < 10


def test_a_typed_key_and_numpy_scalars():
    assert "u32[2]" in str(ft.inspect.array(ft.random.key(0)))
    typed = typed_keys.KeyArray(ft.random.key(0))
    assert "u32[2]" in str(ft.inspect.array(typed)) and "key<fry>[]" in str(ft.inspect.tree([typed]))
    assert "f64[]" in str(ft.inspect.array(np.float64(2)))


def test_what_is_no_array():
    says(refusal(lambda: ft.inspect.array(object())).remedy, "ft.inspect.tree")
