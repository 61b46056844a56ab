"""ft.io: trees load unchanged, other programs read the files, failed saves lose nothing, damaged files run no code."""

import contextlib
import json
import os
import struct
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import dtypes
from functorch_like.errors import CheckpointError
from functorch_like.io import manifest, saving, structure
from functorch_like.random.typed_keys import KeyArray

safetensors = pytest.importorskip("safetensors.numpy", reason="the io extra is not installed")
RNG = np.random.default_rng(0)
FORMS = ["tree.safetensors", "tree"]
State = namedtuple("State", ["params", "step"])

TREE = {
    "layers": [{"w": fnp.asarray(RNG.normal(size=(3, 4)), "float32"), "b": fnp.zeros(4, "bfloat16")}] * 2,
    "numbers": (1, -(2**70), 2.5, float("inf"), 3 - 1j, True, "text \u00e9\0", None),
    "host": np.arange(6).reshape(2, 3).T,
    "scalar": np.float32(1.5),
    "empty": fnp.zeros((0, 3)),
    "zero_rank": fnp.asarray(2.0),
    "nothing": {},
    "dots": {"a.b": 1, "a": {"b": fnp.ones(1)}, "__metadata__": 5},
    "key": ft.random.key(3),
    "typed": KeyArray(ft.random.key(4)),
    "ordered": OrderedDict(b=1, a=2),
    "ints": {3: fnp.arange(2), 1: 4},
}


def bits(x):
    return np.asarray(x).tobytes()


def same(a, b):
    assert ft.tree.structure(a) == ft.tree.structure(b)
    for (path, x), y in zip(ft.tree.leaves_with_path(a), ft.tree.leaves(b), strict=True):
        assert type(x) is type(y), path
        if isinstance(x, (ft.Array, np.ndarray, np.generic)):
            assert (x.dtype, x.shape, bits(x)) == (y.dtype, y.shape, bits(y)), path
        else:
            assert x == y, path


@pytest.mark.parametrize("form", FORMS)
def test_a_tree_comes_back_as_it_was(tmp_path, form):
    ft.io.save(tmp_path / form, TREE)
    same(ft.io.load(tmp_path / form), TREE)
    same(ft.io.load(tmp_path / form, TREE), TREE)
    same(ft.io.load(str(tmp_path / form), verify=False), TREE)


@pytest.mark.parametrize("tree", [fnp.ones(2), 3, None, [], {"a": {}}, "text"])
def test_small_trees(tmp_path, tree):
    for form in FORMS:
        ft.io.save(tmp_path / form, tree)
        same(ft.io.load(tmp_path / form), tree)


@pytest.mark.parametrize("dtype", [d.name for d in dtypes.ALL])
def test_every_dtype_to_the_bit(tmp_path, dtype):
    of = dtypes.as_dtype(dtype)
    host = np.frombuffer(RNG.bytes(24 * of.itemsize), "uint8")
    host = host % 2 if dtype == "bool" else host % 16 if dtype in ("int4", "uint4", "float4_e2m1fn") else host
    host = (
        host.astype(of).reshape(2, 3, 4 * of.itemsize) if dtype in ("int4", "uint4") else host.view(of).reshape(2, 3, 4)
    )
    trees = {"numpy": host, "array": fnp.asarray(host), "strided": host[::-1, :, ::2], "none": host[:, :0]}
    for form in FORMS:
        ft.io.save(tmp_path / form, trees)
        for name, x in ft.io.load(tmp_path / form).items():
            assert (x.dtype, x.shape, bits(x)) == (of, trees[name].shape, bits(trees[name])), name


def test_weak_types(tmp_path):
    weak = ft.jit(lambda x: x)(2.0)
    ft.io.save(tmp_path / "a", {"weak": weak, "strong": fnp.ones(())})
    back = ft.io.load(tmp_path / "a")
    assert weak.weak_type and back["weak"].weak_type and not back["strong"].weak_type


def test_other_programs_read_the_file(tmp_path):
    path = tmp_path / "a.safetensors"
    ft.io.save(path, {"layer": {"weight": fnp.arange(6.0).reshape(2, 3)}, "n": 1, "z": np.array([1 + 2j, 3])})
    read = safetensors.load_file(path)
    np.testing.assert_array_equal(read["layer.weight"], np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(read["z"], [[1, 2], [3, 0]])


def test_files_of_other_programs_are_read(tmp_path):
    path = tmp_path / "a.safetensors"
    arrays = {"layer.weight": np.arange(6.0).reshape(2, 3), "bias": np.ones(2, "float32")}
    safetensors.save_file(arrays, path, metadata={"format": "np"})
    back = ft.io.load(path)
    assert sorted(back) == ["bias", "layer.weight"] and isinstance(back["bias"], ft.Array)
    for like in ({"layer": {"weight": arrays["layer.weight"]}, "bias": arrays["bias"]}, arrays):
        got = ft.io.load(path, like)
        np.testing.assert_array_equal(ft.tree.leaves(got)[1], arrays["layer.weight"])


def test_nodes_of_other_types_need_an_example(tmp_path):
    state = State({"w": fnp.ones(3)}, fnp.asarray(4))
    ft.io.save(tmp_path / "a", state)
    with pytest.raises(CheckpointError, match=r"State', which is not imported(.*\n)*.*like="):
        ft.io.load(tmp_path / "a")
    same(ft.io.load(tmp_path / "a", state), state)
    assert list(ft.io.describe(tmp_path / "a")) == ["params.w", "step"]


# -------------------------------------------------------------------------------------------------------- like=
def test_examples_decide_the_kind_and_the_place(tmp_path):
    ft.io.save(tmp_path / "a", {"x": fnp.arange(4.0), "y": np.arange(3), "z": np.float64(2)})
    shape = ft.ShapeDtypeStruct
    like = {"x": np.zeros(4, "float32"), "y": shape((3,), "int64"), "z": fnp.zeros((), "float64")}
    got = ft.io.load(tmp_path / "a", like)
    assert type(got["x"]) is np.ndarray
    assert isinstance(got["y"], ft.Array) and got["y"].tolist() == [0, 1, 2]
    assert isinstance(got["z"], ft.Array) and got["z"].item() == 2


def test_mismatches_are_reported_leaf_by_leaf(tmp_path):
    ft.io.save(tmp_path / "a", {"a": fnp.ones(3), "b": fnp.ones(2), "c": 1, "d": fnp.ones(1), "gone": fnp.ones(1)})
    like = {"a": fnp.ones(4), "b": fnp.ones(2, "float16"), "c": "1", "d": fnp.zeros(1), "more": {"w": fnp.ones(1)}}
    with pytest.raises(CheckpointError) as caught:
        ft.io.load(tmp_path / "a", like)
    rows = {line.split()[0]: line.split()[1:] for line in str(caught.value).splitlines() if line.startswith("    ")}
    assert rows.pop("file") == ["like"]
    assert rows == {
        "a": ["f32[3]", "f32[4]"], "b": ["f32[2]", "f16[2]"], "c": ["int", "str"], "more.w": ["-", "f32[1]"],
        "gone": ["f32[1]", "-"],
    }  # fmt: skip
    assert "5 of 6 leaves" in str(caught.value)


def test_partial_restoring(tmp_path):
    ft.io.save(tmp_path / "a", {"a": fnp.ones(3), "b": fnp.ones(2), "c": 1})
    got = ft.io.load(tmp_path / "a", {"a": fnp.zeros(3), "new": fnp.zeros(5), "c": 0}, partial=True)
    assert ft.tree.map(lambda x: np.asarray(x).tolist(), got) == {"a": [1, 1, 1], "new": [0] * 5, "c": 1}
    with pytest.raises(CheckpointError, match="like= differ in 1 of"):
        ft.io.load(tmp_path / "a", {"a": fnp.zeros(4)}, partial=True)


@pytest.mark.parametrize(
    "bad", [lambda x: x, object(), {1, 2}, b"bytes", np.arange(3, dtype=">i4"), np.array(["a"]), np.array([None]), type]
)
def test_what_cannot_be_saved_is_named_and_nothing_is_written(tmp_path, bad):
    for form in FORMS:
        with pytest.raises(CheckpointError, match=r"cannot be saved:\n    b\.0: .*"):
            ft.io.save(tmp_path / form, {"a": fnp.ones(2), "b": [bad]})
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_is_no_text(tmp_path):
    for form in FORMS:
        with pytest.raises(CheckpointError, match=r"cannot be saved:\n    a\.\\udc80: a key"):
            ft.io.save(tmp_path / form, {"a": {"\udc80": fnp.ones(2)}})
    assert list(tmp_path.iterdir()) == []


def test_donated_and_traced_leaves_are_named(tmp_path):
    x = fnp.ones(3)
    x.delete()
    with pytest.raises(CheckpointError, match="x: its memory was donated"):
        ft.io.save(tmp_path / "a", {"x": x})
    with pytest.raises(CheckpointError, match="only traced"):
        ft.jit(lambda x: ft.io.save(tmp_path / "a", x))(fnp.ones(2))


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "safetensors", None)
    for call in (lambda: ft.io.save(tmp_path / "a", 1), lambda: ft.io.CheckpointManager(tmp_path)):
        with pytest.raises(ft.errors.UnsupportedError, match=r"functorch_like\[io\]"):
            call()


# ------------------------------------------------------------------------------------------------- damaged and hostile
def saved(tmp_path, form):
    ft.io.save(tmp_path / form, {"a": fnp.arange(100.0), "b": [np.ones((3, 3)), "text", 5]})
    path = tmp_path / form
    return [path] if path.is_file() else sorted(path.iterdir())


@pytest.mark.parametrize("form", FORMS)
def test_every_cut_is_noticed(tmp_path, form):
    for file in saved(tmp_path, form):
        whole = file.read_bytes()
        for size in [*range(min(len(whole), 40)), *range(40, len(whole), max(1, len(whole) // 40)), len(whole) - 1]:
            file.write_bytes(whole[:size])
            with pytest.raises(CheckpointError):
                ft.io.load(tmp_path / form)
        file.write_bytes(whole + b"\0")
        with pytest.raises(CheckpointError):
            ft.io.load(tmp_path / form)
        file.write_bytes(whole)
    ft.io.load(tmp_path / form)


@pytest.mark.parametrize("form", FORMS)
def test_every_flipped_bit_is_noticed_or_harmless(tmp_path, form):
    """A flip is harmless only in what is not read: padding, or the copy of the manifest in a part."""
    files = saved(tmp_path, form)
    want = ft.io.load(tmp_path / form)
    noticed = total = 0
    for file in files:
        whole = file.read_bytes()
        for at in RNG.choice(len(whole), 80, replace=False):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << int(RNG.integers(8))
            file.write_bytes(flipped)
            total += 1
            try:
                same(ft.io.load(tmp_path / form), want)
            except CheckpointError:
                noticed += 1
        file.write_bytes(whole)
    assert noticed > 0.5 * total


def forge(path, change=lambda data: None, text=lambda data: json.dumps(data)):
    """Change the manifest of a file and give it a valid checksum."""
    tensors = safetensors.load_file(path)
    with __import__("safetensors").safe_open(str(path), "numpy") as opened:
        data = json.loads(opened.metadata()[manifest.KEY])
    change(data)
    text = text(data)
    safetensors.save_file(tensors, path, {manifest.KEY: text, manifest.SUM: manifest.digest(text.encode())})


def set_leaf(k, **fields):
    return lambda data: data["leaves"][k].update(fields)


def set_piece(k, **fields):
    return lambda data: data["leaves"][k]["pieces"][0].update(fields)


FORGERIES = {
    "version": (lambda d: d.update(version=99), "version 99"),
    "structure": (lambda d: d.update(structure={"eval": ["__import__('os').system('true')"]}), "differ in number"),
    "unknown node": (lambda d: d.update(structure={"eval": ["*", "*"]}), "unknown node"),
    "class": (lambda d: d.update(structure={"node": "os.system", "children": ["*", "*"]}), "os.system.* not imported"),
    "leaves": (lambda d: d.update(leaves=[]), "differ in number"),
    "leaf type": (lambda d: d.update(leaves=[1, 2]), "not of type leaf"),
    "field": (set_leaf(0, shape="3"), "wrong type"),
    "negative": (set_leaf(0, shape=[-3]), "a shape"),
    "huge": (set_leaf(0, shape=[2**61]), "do not make up"),
    "kind": (set_leaf(0, kind="pickle"), "unknown kind"),
    "dtype": (set_leaf(0, dtype="object"), "unknown dtype"),
    "other dtype": (set_leaf(0, dtype="int32"), "has another array"),
    "other shape": (lambda d: (set_leaf(0, shape=[1, 3])(d), set_piece(0, shape=[1, 3], start=[0, 0])(d)), "another"),
    "outside": (set_piece(0, start=[2]), "do not make up"),
    "path": (set_piece(0, file="../../etc/passwd"), "outside of its folder"),
    "up": (set_piece(0, file=".."), "outside of its folder"),
    "file": (set_piece(0, file="other"), "no file|no safetensors"),
    "tensor": (set_piece(0, tensor="nothing"), "lacks"),
    "digest": (set_piece(0, digest="0" * 32), "not those that were saved"),
    "value": (set_leaf(1, value=["int", "print(1)"]), "a value"),
    "values": (set_leaf(1, value={"a": 1}), "a value"),
    "names": (set_leaf(1, name="a"), "one name"),
    "kind of a key": (lambda d: d["structure"]["dict"][0].__setitem__(0, ["str"]), "an entry that is none"),
    "key": (lambda d: d["structure"]["dict"][0].__setitem__(1, {}), "an entry that is none"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_hostile_manifests(tmp_path, name):
    change, text = FORGERIES[name]
    path = tmp_path / "a.safetensors"
    ft.io.save(path, {"a": fnp.arange(3.0), "b": 7})
    forge(path)
    assert ft.io.load(path)["b"] == 7
    forge(path, change)
    with pytest.raises(CheckpointError, match=text):
        ft.io.load(path)


def places(node):
    """Yield each container in JSON data with the key of each of its items."""
    for key, item in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(item, (dict, list)):
            yield from places(item)


def test_manifests_with_anything_anywhere(tmp_path):
    """A manifest in which any part is replaced by another value loads or raises a CheckpointError."""
    path = tmp_path / "a.safetensors"
    example = {"a": fnp.arange(3.0), "b": [7, "text", KeyArray(ft.random.key(1))], "c": {2: np.ones((2, 0), "int4")}}
    ft.io.save(path, example)
    whole = path.read_bytes()
    things = (None, -1, 2**70, 0.5, float("nan"), "", "..", [], {}, [[]], ["*"], {"keys": []}, [2**62, 2**62], True)
    with __import__("safetensors").safe_open(str(path), "numpy") as opened:
        count = len(list(places(json.loads(opened.metadata()[manifest.KEY]))))
    assert count > 50
    for k in range(count):
        for thing in RNG.choice(len(things), 3, replace=False):

            def change(data, k=k, thing=thing):
                node, key = list(places(data))[k]
                node[key] = things[thing]

            path.write_bytes(whole)
            forge(path, change)
            for read in (lambda: ft.io.load(path), lambda: ft.io.load(path, example), lambda: ft.io.describe(path)):
                with contextlib.suppress(CheckpointError):
                    read()


@pytest.mark.parametrize("depth", [600, 50_000])
def test_a_manifest_that_is_nested_deeply(tmp_path, depth):
    path = tmp_path / "a.safetensors"
    ft.io.save(path, {"a": fnp.arange(3.0)})
    nested = '{"list":[' * depth + '"*"' + "]}" * depth
    forge(path, text=lambda d: json.dumps({**d, "structure": "HERE"}).replace('"HERE"', nested))
    with pytest.raises(CheckpointError, match=r"nodes within nodes|RecursionError"):
        ft.io.load(path)


def test_what_is_written_is_not_too_deep_to_read(tmp_path):
    tree = [1]
    for _ in range(structure.DEEPEST - 1):
        tree = [{"a": 2}, tree] if len(tree) == 1 else [tree]
    for form in FORMS:
        ft.io.save(tmp_path / form, tree)
        same(ft.io.load(tmp_path / form), tree)
        same(ft.io.load(tmp_path / form, tree), tree)
    with pytest.raises(CheckpointError, match="nodes within nodes"):
        ft.io.save(tmp_path / "deeper", [[tree]])


HEADERS = {
    "long": struct.pack("<Q", 2**63) + b"{}",
    "negative": struct.pack("<q", -1) + b"{}",
    "no json": struct.pack("<Q", 4) + b"abcd",
    "pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94\x8c\x06system\x94\x93\x94.",
    "nested": struct.pack("<Q", 200000) + b"[" * 200000,
    "offsets": (lambda h: struct.pack("<Q", len(h)) + h)(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,99]}}'),
    "overflow": (lambda h: struct.pack("<Q", len(h)) + h)(
        b'{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}'
    ),
    "dtype": (lambda h: struct.pack("<Q", len(h)) + h + b"\0" * 8)(
        b'{"a":{"dtype":"PY","shape":[2],"data_offsets":[0,8]}}'
    ),
    "empty": b"",
}  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_hostile_headers(tmp_path, name):
    (tmp_path / "a.safetensors").write_bytes(HEADERS[name])
    with pytest.raises(CheckpointError):
        ft.io.load(tmp_path / "a.safetensors")
    with pytest.raises(CheckpointError):
        ft.io.describe(tmp_path / "a.safetensors")


def test_an_index_that_is_none(tmp_path):
    ft.io.save(tmp_path / "a", {"a": fnp.ones(2)})
    for text in ("", "[]", "{}", '{"manifest": 1, "blake2b": 2}', "[" * 100000, '"\\ud800"'):
        (tmp_path / "a" / saving.INDEX).write_text(text)
        with pytest.raises(CheckpointError):
            ft.io.load(tmp_path / "a")
    with pytest.raises(CheckpointError, match="no checkpoint was completed"):
        ft.io.load(tmp_path)
    with pytest.raises(CheckpointError, match="no file"):
        ft.io.load(tmp_path / "missing.safetensors")
    part = next((tmp_path / "a").glob("part*"))
    with pytest.raises(CheckpointError, match="one part"):
        ft.io.load(part)


def test_verify_false_reads_other_bytes(tmp_path):
    path = tmp_path / "a.safetensors"
    ft.io.save(path, {"a": np.arange(4, dtype="uint8")})
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 255
    path.write_bytes(whole)
    with pytest.raises(CheckpointError, match="not those that were saved"):
        ft.io.load(path)
    assert ft.io.load(path, verify=False)["a"].tolist() == [0, 1, 2, 252]


# ---------------------------------------------------------------------------------------------------- atomic writing
class Stop(BaseException):
    """Exception that stands for the end of the process."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("error", [Stop, OSError(28, "No space left on device")])
def test_a_stop_at_any_call_of_the_system_leaves_the_old_or_the_new(tmp_path, monkeypatch, form, error):
    old, new = {"x": fnp.zeros(3), "n": 0}, {"x": fnp.ones(3), "n": 1}
    ft.io.save(tmp_path / form, old)
    calls, seen = {"left": 0}, []

    def counted(of):
        def call(*args, **kwargs):
            seen.append(of.__name__)
            calls["left"] -= 1
            if calls["left"] == 0:
                raise error if isinstance(error, BaseException) else error()
            return of(*args, **kwargs)

        return call

    for name in ("fsync", "replace", "open"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    outcomes = []
    for k in range(1, 40):
        calls["left"], seen[:] = k, []
        try:
            ft.io.save(tmp_path / form, new)
        except (Stop, CheckpointError):
            pass
        else:
            break
        found = ft.io.load(tmp_path / form)["n"]
        outcomes.append(found)
        assert ft.io.load(tmp_path / form)["x"].tolist() == [found] * 3
        calls["left"] = 0
        ft.io.save(tmp_path / form, old)
    assert outcomes == sorted(outcomes) and outcomes[0] == 0 and len(outcomes) >= 3
    assert not list(tmp_path.rglob("*.tmp"))


def test_saving_again_leaves_nothing_else(tmp_path):
    for k in range(3):
        ft.io.save(tmp_path / "a", {"x": fnp.full(3, k)})
    assert len(list((tmp_path / "a").iterdir())) == 2
    assert ft.io.load(tmp_path / "a")["x"].tolist() == [2, 2, 2]


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for form in FORMS:
        with pytest.raises(CheckpointError, match=r"cannot be made|could not be written"):
            ft.io.save(tmp_path / "file" / form, {"x": 1})


def test_asynchronous_writes_are_of_the_tree_as_it_was(tmp_path):
    host = np.arange(5)
    x = fnp.arange(1_000_00.0)
    future = ft.io.save_async(tmp_path / "a.safetensors", {"host": host, "x": x})
    host[:] = 0
    x.delete()
    assert future.result() is None
    back = ft.io.load(tmp_path / "a.safetensors")
    assert back["host"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(back["x"], np.arange(1_000_00.0))
    with pytest.raises(CheckpointError, match="cannot be saved"):
        ft.io.save_async(tmp_path / "b", {"f": print})
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError):
        ft.io.save_async(tmp_path / "file" / "b", {"x": 1}).result()


@pytest.mark.parametrize(
    ("name", "start", "remedy"),
    [
        ("model.pt", b"PK\x03\x04", "safetensors.torch.save_file(torch.load("),
        ("model.bin", b"\x80\x02}q\x00", "safetensors.torch.save_file(torch.load("),
        ("x.npy", b"\x93NUMPY\x01\x00", "fnp.load(path)"),
        ("x.npz", b"PK\x03\x04", "fnp.load(path)"),
        ("cut.safetensors", b"\x10\x00", "restore from another copy"),
    ],
)
def test_files_of_other_libraries(tmp_path, name, start, remedy):
    (tmp_path / name).write_bytes(start + bytes(64))
    with pytest.raises(CheckpointError, match="is not a safetensors file") as e:
        ft.io.load(tmp_path / name)
    assert remedy in e.value.fix
