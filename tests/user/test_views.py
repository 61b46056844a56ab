"""Bytes of arrays, arrays from bytes, text and other libraries."""

import numpy as np
import pytest
from support.compare import agrees, same

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError


@pytest.mark.parametrize("source", ["bool", "int8", "uint16", "int32", "float32", "float64", "complex64", "complex128"])
def test_view(source):
    x = (np.arange(32).reshape(2, 16) % 2).astype(source)
    for target in ("bool", "uint8", "int16", "uint32", "float32", "float64", "complex64", "complex128"):
        if target == "bool" and source not in ("int8", "bool"):
            continue  # bytes other than 0 and 1 are not bools
        want = x.view(target)
        got = fnp.asarray(x).view(target)
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_array_equal(np.asarray(got), want)
    np.testing.assert_array_equal(np.asarray(fnp.asarray(x).byteswap()).view("uint8"), x.byteswap().view("uint8"))
    assert fnp.asarray(x).tobytes() == x.tobytes()
    assert fnp.asarray(x).tobytes("F") == x.tobytes("F")


def test_view_at_the_edges():
    assert int(fnp.asarray(1.0).view("int32")) == 0x3F800000
    assert fnp.zeros((3, 0)).view("int8").shape == (3, 0)
    assert fnp.ones(2, "bfloat16").view("uint16").tolist() == [0x3F80, 0x3F80]
    with pytest.raises(ShapeError, match="bytes"):
        fnp.ones(3).view("float64")
    with pytest.raises(ShapeError, match="rank 0"):
        fnp.asarray(1.0).view("int8")
    with pytest.raises(DtypeError, match="half a byte"):
        fnp.ones(2, "int4").view("int8")
    with pytest.raises(ArgumentError, match="type"):
        fnp.ones(2).view(type=np.ndarray)
    with pytest.raises(ArgumentError, match="in place"):
        fnp.ones(2).byteswap(inplace=True)
    z = fnp.asarray([1 + 2j])
    assert ft.grad(lambda x: (x.view("complex64").real ** 2).sum())(fnp.asarray([3.0, 4.0])).tolist() == [6.0, 0.0]
    assert ft.vmap(lambda v: v.view("float32"))(z[None]).tolist() == [[1.0, 2.0]]


def test_methods():
    x = fnp.asarray([[3, 1, 2]])
    assert x.argpartition(1, axis=1).tolist() == [[1, 2, 0]]
    assert x.compress(fnp.asarray([True, False, True]), axis=1).tolist() == [[3, 2]]
    assert fnp.asarray([1, 0]).choose([fnp.asarray([1, 2]), fnp.asarray([3, 4])]).tolist() == [3, 2]
    assert x.__array_namespace__(api_version="2024.12") is fnp
    with pytest.raises(ArgumentError, match="version"):
        x.__array_namespace__(api_version="1999.12")
    with pytest.raises(ConcretizationError):
        ft.jit(lambda v: v.tobytes())(x)


def test_arrays_from_elsewhere(tmp_path):
    agrees("frombuffer", b"abcd", dtype="uint8", count=2, offset=1)
    agrees("frombuffer", np.arange(3.0).tobytes(), dtype="float64")
    agrees("fromstring", "1, 2.5, 3", dtype="float32", sep=",")
    same(fnp.fromiter(range(5), "int32", count=3), np.arange(3))
    np.arange(4.0).tofile(tmp_path / "numbers")
    same(fnp.fromfile(tmp_path / "numbers", "float64", offset=8), np.arange(1.0, 4.0))
    assert fnp.fromfunction(lambda i, j: fnp.where(i > j, i, j), (2, 3), dtype="int32").tolist() == [
        [0, 1, 2],
        [1, 1, 2],
    ]
    assert fnp.fromfunction(lambda i: fnp.stack([i, 2 * i]), 2).tolist() == [[0.0, 0.0], [1.0, 2.0]]
    assert fnp.fromfunction(lambda: fnp.asarray(3.0), ()).shape == ()


class Producer:
    """An array of another library."""

    def __init__(self, array, kind=1):
        self.array, self.kind, self.asked = array, kind, {}

    def __dlpack__(self, **asked):
        self.asked = asked
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.kind, 0


def test_from_dlpack():
    host = np.arange(3.0)
    taken = fnp.from_dlpack(host)
    host[0] = 9
    assert taken.tolist() == [0.0, 1.0, 2.0]
    mine = fnp.ones(2)
    assert fnp.from_dlpack(mine) is mine
    assert fnp.from_dlpack(mine, copy=False, device="cpu").tolist() == [1.0, 1.0]
    copied = fnp.from_dlpack(mine, copy=True)
    assert copied.tolist() == [1.0, 1.0]
    assert copied.unsafe_buffer_pointer() != mine.unsafe_buffer_pointer()
    assert fnp.from_dlpack(Producer(fnp.ones(2, "bfloat16"))).dtype == fnp.bfloat16
    elsewhere = Producer(host, kind=2)
    with pytest.raises(BufferError, match="device='cpu'"):
        fnp.from_dlpack(elsewhere)
    assert fnp.from_dlpack(elsewhere, device="cpu").tolist() == [9.0, 1.0, 2.0]
    assert elsewhere.asked["dl_device"] == (1, 0)
    with pytest.raises(BufferError, match="copy"):
        fnp.from_dlpack(host, copy=False)
    with pytest.raises(AttributeError):
        fnp.from_dlpack(3)
    with pytest.raises(BufferError, match="astype"):
        fnp.ones(2, "int4").__dlpack__()
    with pytest.raises(ConcretizationError):
        ft.jit(fnp.from_dlpack)(mine)
