"""Kernels in C++, compiled against the headers that come with jaxlib, registered and called."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import ffi
from functorch_like.errors import ArgumentError, CompileError, DtypeError, UnsupportedError

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <string_view>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

// x / sqrt(mean(x * x) + eps), along the last dimension; and the mean itself.
static ffi::Error Normalize(float eps, int64_t times, bool flip, std::string_view mode, ffi::Buffer<ffi::F32> x,
                            ffi::ResultBuffer<ffi::F32> y, ffi::ResultBuffer<ffi::F32> mean) {
  if (mode != "a \"b\"\n") return ffi::Error::InvalidArgument("mode is wrong");
  auto dims = x.dimensions();
  int64_t n = dims.back(), rows = x.element_count() / n;
  for (int64_t r = 0; r < rows; ++r) {
    const float *in = x.typed_data() + r * n;
    float total = 0;
    for (int64_t i = 0; i < n; ++i) total += in[i] * in[i];
    mean->typed_data()[r] = total / n;
    float scale = times / std::sqrt(total / n + eps) * (flip ? -1 : 1);
    for (int64_t i = 0; i < n; ++i) y->typed_data()[r * n + i] = in[i] * scale;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(normalize, Normalize,
    ffi::Ffi::Bind().Attr<float>("eps").Attr<int64_t>("times").Attr<bool>("flip").Attr<std::string_view>("mode")
        .Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

// sum of weights[i] * x, for numbers known when the program is compiled.
static ffi::Error Weigh(ffi::Span<const double> weights, ffi::Buffer<ffi::F64> x, ffi::ResultBuffer<ffi::F64> y) {
  double total = 0;
  for (double w : weights) total += w;
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = total * x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(weigh, Weigh,
    ffi::Ffi::Bind().Attr<ffi::Span<const double>>("weights")
        .Arg<ffi::Buffer<ffi::F64>>().Ret<ffi::Buffer<ffi::F64>>());
"""

COMPILER = shutil.which("c++") or shutil.which("g++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
ATTRIBUTES = {"eps": np.float32(1e-6), "times": 2, "flip": True, "mode": 'a "b"\n'}


@pytest.fixture(scope="session")  # a process registers the name of a kernel once
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "kernel.cc").write_text(SOURCE)
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=default", f"-I{ffi.include_dir()}"]
    done = subprocess.run(
        [COMPILER, *flags, "kernel.cc", "-o", "kernel.so"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = ctypes.CDLL(str(folder / "kernel.so"))
    ffi.register_ffi_target("tests.normalize", loaded.normalize)
    ffi.register_ffi_target("tests.weigh", ffi.pycapsule(loaded.weigh))
    return loaded


def normalize(x, method=None, **attributes):
    shapes = (ft.ShapeDtypeStruct(x.shape, x.dtype), ft.ShapeDtypeStruct(x.shape[:-1], x.dtype))
    return ffi.ffi_call("tests.normalize", shapes, vmap_method=method)(x, **(ATTRIBUTES | attributes))


def want(x):
    mean = (x * x).mean(-1)
    return -2 * x / np.sqrt(mean + 1e-6)[..., None], mean


def check(got, x):
    for g, w in zip(got, want(x), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5)


@needs_compiler
def test_it_runs_eagerly_and_compiled(library):
    check(normalize(X), X)
    check(ft.jit(normalize)(X), X)
    y = ft.jit(lambda x: normalize(x * 2)[0].sum())(X)
    np.testing.assert_allclose(y, want(2 * X)[0].sum(), rtol=1e-5)


@needs_compiler
def test_a_single_result_and_a_vector_of_attributes(library):
    x = np.arange(3.0)
    call = ffi.ffi_call("tests.weigh", ft.ShapeDtypeStruct((3,), "float64"))
    np.testing.assert_array_equal(call(x, weights=np.array([0.1, 0.2, 0.3])), (0.1 + 0.2 + 0.3) * x)
    np.testing.assert_array_equal(call(x, weights=np.zeros(0)), 0 * x)


@needs_compiler
@pytest.mark.parametrize("method", ["sequential", "broadcast_all", "expand_dims"])
def test_under_vmap(library, method):
    check(ft.vmap(lambda x: normalize(x, method))(X), X)
    check(ft.jit(ft.vmap(lambda x: normalize(x, method), in_axes=1))(X), X.T.copy())


@needs_compiler
def test_vmap_without_a_method_says_what_to_do(library):
    with pytest.raises(UnsupportedError, match=r'vmap_method="sequential"'):
        ft.vmap(normalize)(X)


@needs_compiler
def test_it_has_no_derivative_and_says_what_to_do(library):
    with pytest.raises(UnsupportedError, match="custom_vjp"):
        ft.grad(lambda x: fnp.sum(normalize(x)[0]))(X)


@needs_compiler
def test_custom_vjp_gives_it_a_derivative(library):
    same = lambda x: -2 * x / fnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    f = ft.custom_vjp(lambda x: normalize(x, "sequential")[0])
    f.defvjp(lambda x: (f(x), x), lambda x, g: ft.vjp(same, x)[1](g))
    weights = np.cos(np.arange(X.size, dtype=np.float32)).reshape(X.shape)
    slope = lambda of: ft.grad(lambda x: (of(x) * weights).sum())(X)
    want = slope(same)
    for got in (slope(f), slope(ft.jit(f)), slope(ft.vmap(f))):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@needs_compiler
@pytest.mark.parametrize("compiled", [False, True])
def test_what_the_kernel_refuses_is_an_error(library, compiled):
    run = ft.jit(normalize) if compiled else normalize
    with pytest.raises(CompileError, match=r"(?i)buffer dtype"):
        run(X.astype(np.float64))
    bad = [
        ({"mode": "other"}, "mode is wrong"),
        ({"eps": 1e-6}, "expected F32 but got F64"),  # a Python float has 64 bits
        ({"more": 1}, r"(?i)attributes"),
    ]
    for attributes, match in bad:
        with pytest.raises(CompileError, match=match):
            ft.jit(lambda x, a=attributes: normalize(x, **a))(X)
    with pytest.raises(CompileError, match=r"(?i)number of"):
        ffi.ffi_call("tests.weigh", ft.ShapeDtypeStruct((3,), "float64"))(np.ones(3), np.ones(3), weights=np.ones(1))
    check(normalize(X), X)  # later calls still work


@needs_compiler
def test_names_are_given_once(library):
    ffi.register_ffi_target("tests.normalize", library.normalize)
    with pytest.raises(ArgumentError, match="another function is registered"):
        ffi.register_ffi_target("tests.normalize", library.weigh)


def test_what_is_no_kernel_is_refused():
    for bad in (3, None, lambda: 0, "name"):
        with pytest.raises(ArgumentError, match="is not a handler"):
            ffi.register_ffi_target("tests.bad", bad)
    with pytest.raises(ArgumentError, match="null pointer"):
        ffi.register_ffi_target("tests.bad", ctypes.CFUNCTYPE(ctypes.c_int)())
    with pytest.raises(ArgumentError, match="cpu, gpu"):
        ffi.register_ffi_target("tests.bad", ctypes.pythonapi.Py_IncRef, platform="tpu")


def test_a_call_of_nothing_is_refused():
    shape = ft.ShapeDtypeStruct((3,), "float32")
    for call in (ffi.ffi_call("tests.nothing", shape), ft.jit(ffi.ffi_call("lapack_spotrf_ffi", shape))):
        with pytest.raises(ArgumentError, match="no foreign function"):
            call(X[0])
    with pytest.raises(ArgumentError, match="vmap_method"):
        ffi.ffi_call("tests.nothing", shape, vmap_method="loop")
    with pytest.raises(UnsupportedError, match="pure"):
        ffi.ffi_call("tests.nothing", shape, has_side_effect=True)
    with pytest.raises(ArgumentError, match="no shape and dtype"):
        ffi.ffi_call("tests.nothing", 3)
    with pytest.raises(DtypeError, match="attribute w"):
        ffi.ffi_call("tests.nothing", shape)(X[0], w=np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="64 bits"):
        ffi.ffi_call("tests.nothing", shape)(X[0], w=2**64)
