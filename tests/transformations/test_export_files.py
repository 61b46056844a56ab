"""Files of exported programs: old ones load, damaged and hostile ones are refused, and the command shows them."""

import contextlib
import json
import random
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import exported_files
from support.exported_files import signed

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, export
from functorch_like.exporting import command, nodes

FOLDER = Path(__file__).parent / "exported"
FILES = sorted(FOLDER.glob("*.ft"))
R = np.random.default_rng(0)


def layer_in_numpy(params, x, power):
    """NumPy reference of the programs in the committed files."""
    hidden = np.tanh(x @ params["w"] + params["b"])
    total = np.zeros(4, "float32")
    for _ in range(3):
        total = total * 0.5 + hidden.sum(0)
    steps = [total if total[0] > 0 else -total, (np.argsort(x[0]).astype("int32"), None)]
    return (
        {"hidden": hidden, "steps": steps},
        np.linalg.cholesky(hidden.T @ hidden + np.eye(4, dtype="float32")),
        power + 1,
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_earlier_versions(path):
    assert len(FILES) == 2
    params = {"w": R.standard_normal((3, 4)).astype("float32"), "b": R.standard_normal(4).astype("float32")}
    x = R.standard_normal((2, 3)).astype("float32")
    program = export.deserialize(path.read_bytes())
    result = program.call(params, x, power=5)
    ft.testing.assert_allclose(result, layer_in_numpy(params, x, np.int32(5)), rtol=1e-5, atol=1e-5)
    assert program.platforms == ("cpu", "gpu") and "stablehlo.cholesky" in program.mlir_module("gpu")


# -------------------------------------------------------------------------------------------------------- refused files
def parts(data=None):
    return exported_files.parts(data or (FOLDER / "format_1.ft").read_bytes())


def changed(**fields):
    return exported_files.changed((FOLDER / "format_1.ft").read_bytes(), **fields)


def nested(depth):
    tree = "*"
    for _ in range(depth):
        tree = {"list": [tree]}
    return tree


HEADER, PROGRAMS = parts()
HOSTILE = {
    "a newer format": (changed(format=7), "stored in format 7, and this version reads up to 2"),
    "no format": (changed(format=None), "its format is None"),
    "format zero": (changed(format=0), "its format is 0"),
    "a format that is not a number": (changed(format="1; import os"), "its format is '1; import os'"),
    "a pickle": (signed(b"\x80\x04cos\nsystem\n(S'true'\ntR."), "header is not JSON"),
    "brackets": (signed(b"[" * 200_000), "header is not JSON"),
    "a list": (signed([1]), "not an object"),
    "a long header": (signed(HEADER, PROGRAMS, size=2**63), "cut off"),
    "no name": (changed(name=None), "'name' is None"),
    "no tree": (signed({k: v for k, v in HEADER.items() if k != "in_tree"}, PROGRAMS), "no field 'in_tree'"),
    "a deep tree": (changed(in_tree=nested(202)), "nested more than 200 deep"),
    "a strange node": (changed(in_tree={"__class__": []}), "in_tree has a node"),
    "a strange entry": (changed(in_tree={"dict": [[[], "*"]]}), "in_tree has a node"),
    "a node that is not registered": (changed(in_tree={"node": ["a.b", "", []]}), "a.b, which is not registered"),
    "a node of strange data": (changed(in_tree={"node": ["a.b", "?", []]}), "auxiliary data that are no bytes"),
    "a node of two fields": (changed(in_tree={"node": ["a.b", ""]}), "in_tree has a node"),
    "too few leaves": (changed(in_tree={"tuple": ["*"]}), "in_tree has 1 leaves, and there are 4 shapes"),
    "a negative size": (changed(in_avals=[[[-1], "float32", False]]), r"shape of in_avals\[0\] is \[-1\]"),
    "a huge size": (changed(in_avals=[[[2**40, 2**40], "float32", False]]), "which no memory holds"),
    "a size that is not a number": (changed(in_avals=[[["2"], "float32", False]]), r"shape of in_avals\[0\]"),
    "a strange dtype": (changed(in_avals=[[[2], "O", False]]), r"dtype of in_avals\[0\] is 'O'"),
    "avals of two fields": (changed(in_avals=[[[2], "float32"]]), "'in_avals'"),
    "another platform": (changed(programs=[["abacus", 9]]), "a program for 'abacus'"),
    "a platform twice": (changed(programs=[["cpu", 9], ["cpu", 9]]), "a program for 'cpu'"),
    "a program that is too long": (changed(programs=[["cpu", 2**40]]), "bytes, and"),
    "a negative length": (changed(programs=[["cpu", -5]]), "has -5 bytes"),
    "bytes left over": (changed(programs=[["cpu", 5]]), "bytes behind"),
    "no program": (signed({**HEADER, "programs": []}), "0 programs"),
    "a derivative that is a number": (changed(derivative=5), "'derivative' is 5"),
    "a derivative that is no base64": (changed(derivative="?!"), "'derivative' is '[?]!'"),
    "strange versions": (changed(written_by={"functorch_like": ["x"]}), "'written_by'"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files(kind):
    data, text = HOSTILE[kind]
    with pytest.raises(errors.ArgumentError, match=text):
        export.deserialize(data)


def test_every_truncation():
    data = (FOLDER / "format_1.ft").read_bytes()
    for size in range(0, len(data), 7):
        with pytest.raises(errors.ArgumentError, match=r"not an exported program|cut off|damaged"):
            export.deserialize(data[:size])


def test_fields_of_later_versions_are_passed_over():
    program = export.deserialize(changed(colour="green"))
    assert program.fun_name == "stored_layer" and program.written_by["functorch_like"]


def program_of(text, in_avals, out_avals):
    """Return a file with a correct checksum and a given program."""
    from jaxlib.mlir import ir

    from functorch_like.backends.xla import mlir, portable

    with mlir.lock, mlir.context:
        module = ir.Module.parse(text)
    program, version = portable.written(module)
    tree = lambda n: {"tuple": [{"tuple": ["*"] * n}, {"dict": []}]}
    header = {
        "format": 1,
        "name": "strange",
        "stablehlo": version,
        "in_tree": tree(len(in_avals)),
        "out_tree": {"tuple": ["*"] * len(out_avals)},
        "in_avals": in_avals,
        "out_avals": out_avals,
        "programs": [["cpu", len(program)]],
    }
    return signed(header, program)


CALLBACK = """
func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {api_version = 4 : i32,
    backend_config = {index = 4711 : ui64}} : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}"""


def test_a_program_that_calls_by_address():
    program = export.deserialize(program_of(CALLBACK, [[[2], "float32", False]], [[[2], "float32", False]]))
    for use in (lambda: program.call(np.ones(2, "float32")), program.mlir_module):
        with pytest.raises(errors.ArgumentError, match="calls xla_ffi_python_cpu_callback, which no exported"):
            use()


IDENTITY = "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"


def test_a_program_of_other_shapes_than_the_file_states():
    for ins, outs in (([2**20], [2]), ([2], [2**20])):
        program = export.deserialize(program_of(IDENTITY, [[ins, "float32", False]], [[outs, "float32", False]]))
        with pytest.raises(errors.ArgumentError, match="not of the shapes and dtypes that its file states"):
            program.call(np.ones(ins, "float32"))


def test_bytes_that_are_no_program():
    header, programs = parts()
    (name, length), *_ = header["programs"]
    for bad in (b"x" * 50, programs[: length // 2], b"ML\xefRStableHLO_v9.0.0\x00" + programs[30:length]):
        program = export.deserialize(signed({**header, "programs": [[name, len(bad)]]}, bad))
        with pytest.raises(errors.ArgumentError, match="cannot read the program"):
            program.mlir_module()


def test_headers_with_changed_characters():
    r, text, loaded = random.Random(0), json.dumps(HEADER), 0
    for _ in range(400):
        bad = list(text)
        for _ in range(r.randrange(1, 3)):
            bad[r.randrange(len(bad))] = r.choice('{}[],:"0123456789eE-.*ntxy\\ ')
        with contextlib.suppress(errors.ArgumentError):
            loaded += export.deserialize(signed("".join(bad).encode(), PROGRAMS)) is not None
    assert 0 < loaded < 300


# ---------------------------------------------------------------------------------------------------------- the command
def inspected(arguments):
    return command.main(export.deserialize, arguments)


def test_inspect(capsys):
    path = str(FOLDER / "format_1.ft")
    assert inspected([path, "--inspect"]) == 0
    shown = capsys.readouterr().out
    for text in (
        f"{path}: stored_layer\n  written by: functorch_like 0.1.0, jaxlib ",
        "arguments: 4 arrays, 92 bytes",
        "[0][0]['w']   f32[3,4]  48 bytes",
        "results: 5 arrays, 128 bytes",
        "program for gpu: 62 operations, 1.448 KiB",
        "stablehlo.dot_general 2",
    ):
        assert text in shown
    assert inspected([path, "--stablehlo", "--platform", "gpu"]) == 0
    assert "stablehlo.cholesky" in capsys.readouterr().out
    assert inspected([path, "--stablehlo", "--platform", "tpu"]) == 1
    assert "exported for cpu, gpu" in capsys.readouterr().err


def test_inspect_of_other_files(capsys, tmp_path):
    (tmp_path / "x.ft").write_bytes(b"hello")
    assert inspected([str(tmp_path / "x.ft")]) == 1
    assert "not an exported program" in capsys.readouterr().err
    assert inspected([str(tmp_path / "missing.ft")]) == 1
    assert "missing.ft" in capsys.readouterr().err


def test_the_command():
    command = [sys.executable, "-m", "functorch_like.export", str(FOLDER / "format_1_first.ft"), "--inspect"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "written by: a version that left no note" in told.stdout and not told.stderr


def test_trees_that_are_too_deep_to_load_are_not_stored():
    tree = 1.0
    for _ in range(199):
        tree = [tree]
    made = export.export(ft.jit(lambda t: 0.0))
    assert export.deserialize(made(tree).serialize()).out_avals
    with pytest.raises(errors.UnsupportedError, match="more than 200 deep"):
        made([tree]).serialize()


def test_counts():
    made = export.export(ft.jit(lambda x: fnp.sin(x) * x))(np.ones(3, "float32"))
    assert made.operation_counts() == {"stablehlo.sine": 1, "stablehlo.multiply": 1}
    assert set(made.written_by) == {"functorch_like", "jaxlib"}


class Moments(NamedTuple):
    """A state, as optimizers have."""

    count: Any
    mean: Any


class Scaled:
    """A node with auxiliary data, and with a check of its children."""

    def __init__(self, values, unit):
        assert len(values) == 2
        self.values, self.unit = values, unit


ft.tree.register_pytree_node(Scaled, lambda x: (x.values, x.unit), lambda unit, values: Scaled(tuple(values), unit))


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(nodes, "_BY_NAME", {})
    monkeypatch.setattr(nodes, "_BY_TYPE", {})
    export.register_namedtuple_serialization(Moments, serialized_name="tests.Moments")
    export.register_pytree_node_serialization(
        Scaled, serialized_name="tests.Scaled", serialize_auxdata=lambda unit: unit.encode(),
        deserialize_auxdata=lambda data: data.decode(),
    )  # fmt: skip


def test_registered_nodes_are_stored(registered):
    def step(state, x):
        return Moments(state.count + 1, {"of": [Scaled((x.values[0] * 2, x.values[1]), x.unit), None]})

    given = Moments(0, {"of": [1.0]}), Scaled((np.ones(2), 3.0), "m")
    stored = export.export(ft.jit(step))(*given).serialize()
    out = export.deserialize(stored).call(*given)
    assert type(out) is Moments and out.count.item() == 1
    scaled, nothing = out.mean["of"]
    assert type(scaled) is Scaled and scaled.unit == "m" and nothing is None
    np.testing.assert_array_equal(scaled.values[0], [2, 2])
    with pytest.raises(errors.FtError):  # another unit is another structure
        export.deserialize(stored).call(given[0], Scaled((np.ones(2), 3.0), "s"))


def test_types_of_nodes_are_registered_once(registered):
    with pytest.raises(errors.ArgumentError, match=r"Moments is stored as 'tests\.Moments' already"):
        export.register_namedtuple_serialization(Moments, serialized_name="other")
    with pytest.raises(errors.ArgumentError, match="is not a named tuple"):
        export.register_namedtuple_serialization(dict, serialized_name="other")


def test_a_named_tuple_of_other_fields_is_refused(registered, monkeypatch):
    stored = export.export(ft.jit(lambda s: s.count))(Moments(0, 1)).serialize()
    monkeypatch.setattr(nodes, "_BY_NAME", {})
    monkeypatch.setattr(nodes, "_BY_TYPE", {})
    export.register_namedtuple_serialization(namedtuple("Moments", "count spread"), serialized_name="tests.Moments")
    with pytest.raises(errors.ArgumentError, match=r"stored with the fields \('count', 'mean'\)"):
        export.deserialize(stored)


def test_what_is_not_registered_is_not_stored():
    with pytest.raises(errors.UnsupportedError, match="register"):
        export.export(ft.jit(lambda s: s.count))(Moments(0, 1)).serialize()
