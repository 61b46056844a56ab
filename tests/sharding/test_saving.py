"""ft.io with arrays that are split over devices: an array saved from one mesh loads onto another."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import CheckpointError
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P

pytest.importorskip("safetensors", reason="the io extra is not installed")
MESH, OTHER = ft.make_mesh((4, 2), ("x", "y")), ft.make_mesh((2,), ("z",), devices=ft.devices()[:2])
A, B = np.arange(64.0).reshape(8, 8), np.arange(16).reshape(2, 8).astype("bfloat16")


def split():
    return {
        "a": ft.device_put(A, NamedSharding(MESH, P("x", "y"))),
        "b": ft.device_put(B, NamedSharding(MESH, P(None, "x"))),
        "whole": ft.device_put(A, NamedSharding(MESH, P())),
    }


@pytest.mark.parametrize("name", ["a", "a.safetensors"])
def test_another_mesh(tmp_path, name):
    ft.io.save(tmp_path / name, split())
    saved = ft.io.load(tmp_path / name)
    np.testing.assert_array_equal(saved["a"], A)
    assert len(saved["a"].devices()) == 1
    again = ft.io.load(tmp_path / name, split())
    assert again["a"].sharding == split()["a"].sharding
    where = {"a": NamedSharding(OTHER, P("z")), "b": NamedSharding(OTHER, P(None, "z")), "whole": None}
    moved = ft.io.load(tmp_path / name, shardings=where)
    assert moved["a"].sharding == where["a"] and moved["b"].sharding == where["b"]
    np.testing.assert_array_equal(moved["a"], A)
    np.testing.assert_array_equal(np.asarray(moved["b"]).astype(float), B.astype(float))
    shapes = ft.tree.map(lambda x, s: ft.ShapeDtypeStruct(x.shape, x.dtype, sharding=s), {"a": A}, {"a": where["a"]})
    assert ft.io.load(tmp_path / name, shapes, partial=True)["a"].sharding == where["a"]


def test_only_the_rows_of_a_device_are_read(tmp_path, monkeypatch):
    from functorch_like.io.files import TensorFile

    ft.io.save(tmp_path / "a", {"a": A})
    rows = []
    read = TensorFile.rows
    monkeypatch.setattr(TensorFile, "rows", lambda *args: rows.append(args[2:]) or read(*args))
    ft.io.load(tmp_path / "a", shardings=NamedSharding(ft.make_mesh((8,), ("i",)), P("i")))
    assert sorted(rows) == [(k, k + 1) for k in range(8)]
    whole = bytearray((part := next((tmp_path / "a").glob("part*"))).read_bytes())
    whole[-1] ^= 1
    part.write_bytes(whole)
    with pytest.raises(CheckpointError, match="not those that were saved"):
        ft.io.load(tmp_path / "a", shardings=NamedSharding(ft.make_mesh((8,), ("i",)), P("i")))


def test_a_sharding_that_does_not_divide(tmp_path):
    ft.io.save(tmp_path / "a", {"a": fnp.ones((6, 2))})
    with pytest.raises(ft.errors.ShapeError):
        ft.io.load(tmp_path / "a", shardings=NamedSharding(MESH, P("x")))
