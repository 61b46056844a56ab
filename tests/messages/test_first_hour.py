"""Mistakes of a user's first hour: the errors name the function, the argument and the remedy."""

import dataclasses
import subprocess
import sys
import traceback

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax, source_info

X = fnp.ones(4)
RETURNING_TEXT = {
    "vmap": lambda f: ft.vmap(f)(X),
    "grad": lambda f: ft.grad(f)(X),
    "vjp": lambda f: ft.vjp(f, X),
    "jvp": lambda f: ft.jvp(f, (X,), (X,)),
    "jacfwd": lambda f: ft.jacfwd(f)(X),
    "jacrev": lambda f: ft.jacrev(f)(X),
    "linearize": lambda f: ft.linearize(f, X),
}


@pytest.mark.parametrize("transform", RETURNING_TEXT)
def test_a_result_that_is_no_array(transform):
    message = refusal(lambda: RETURNING_TEXT[transform](lambda x: {"name": "done"}), errors.DtypeError, TypeError)
    says(message.head, "the function returned 'done' of type str at ['name']")
    says(message.remedy, "return arrays")


def test_auxiliary_results_may_be_anything():
    assert ft.grad(lambda x: (x.sum(), "done"), has_aux=True)(X)[1] == "done"


@pytest.mark.parametrize("transform", [ft.grad, ft.value_and_grad, ft.hessian, ft.jacrev])
def test_arguments_in_the_place_of_argnums(transform):
    message = refusal(lambda: transform(lambda x: x.sum(), X)(X), errors.ArgumentError)
    says(message.remedy, "(f)(x)")


def test_a_number_in_the_place_of_starts():
    message = refusal(lambda: lax.dynamic_slice(X, 0, 2), errors.ArgumentError, TypeError)
    says(message.head, "ft.lax.dynamic_slice: one of start_indices=0, slice_sizes=2 is not a sequence")
    says(message.remedy, "give a tuple", "dynamic_slice(operand, start_indices, slice_sizes, ")


@pytest.mark.parametrize("wrong", [{"static_argnums": "x"}, {"static_argnums": 1.0}, {"donate_argnums": ["x"]}])
def test_names_in_the_place_of_positions(wrong):
    message = refusal(lambda: ft.jit(lambda x: x, **wrong), errors.ArgumentError)
    says(message.remedy, "give ints", "argnames=")


def test_positions_in_the_place_of_names():
    says(refusal(lambda: ft.jit(lambda x: x, static_argnames=0), errors.ArgumentError).remedy, "static_argnums=")


def test_updates_that_are_spelt_otherwise():
    says(refusal(lambda: X.at(0).set(1), errors.ArgumentError, TypeError).remedy, "square brackets")
    with pytest.raises(AttributeError, match="no method 'sub'; did you mean 'subtract'"):
        X.at[0].sub(1)
    with pytest.raises(AttributeError, match="no method 'replace'; it has set, add, subtract"):
        X.at[0].replace(1)
    assert not hasattr(X.at[0], "__array__") and np.asarray(X.at[0].get()) == 1


def test_metrics_without_names(tmp_path):
    pytest.importorskip("safetensors")
    manager = ft.io.CheckpointManager(tmp_path)
    says(refusal(lambda: manager.save(1, {"w": X}, metrics=0.5), errors.ArgumentError).remedy, "dict")


def test_functions_that_scipy_alone_has():
    pytest.importorskip("scipy")
    for name in "ndimage.gaussian_filter", "signal.butter", "interpolate.interp1d", "spatial.distance":
        module, function = name.split(".")
        with pytest.raises(AttributeError, match=f"SciPy's own takes values, not traced ones: scipy.{name}"):
            getattr(getattr(ft.scipy, module), function)
    with pytest.raises(AttributeError, match=r"has no attribute 'nowhere'$"):
        _ = ft.scipy.linalg.nowhere


def test_names_of_older_versions():
    for module, name, remedy in (
        (ft, "cat", "fnp.concatenate"),
        (ft, "autograd", "ft.grad"),
        (ft, "xmap", "ft.vmap"),
        (ft.ops, "index_update", "x.at"),
        (ft.experimental, "optimizers", "optax"),
    ):
        with pytest.raises(AttributeError, match=remedy):
            getattr(module, name)


#: Reading and writing of names that do not exist, and calls in which nothing of the user's runs.
WITHOUT_FRAMES = {
    "a module's name": lambda: fnp.cat,
    "a package's name": lambda: ft.manual_seed,
    "a setting's module": lambda: ft.backends.cudn,
    "a primitive": lambda: ft.primitives.structural.reshap,
    "a method": lambda: X.unsqueeze(0),
    "a method of x.at": lambda: X.at.foo,
    "an update": lambda: X.at[0].replace(1),
    "an assignment to x.at": lambda: X.at.__setitem__(0, 1),
    "a name of a Ref": lambda: ft.new_ref(X).foo,
    "an attribute that is assigned to": lambda: setattr(X, "shape", (2, 2)),
    "NumPy's out=": lambda: fnp.add(X, 1, out=np.zeros(4)),
    "NumPy's where= of one operand": lambda: fnp.exp(X, where=X > 0),
    "a result in the place of a function": lambda: ft.grad(X.sum()),
    "in_axes that are no tuple": lambda: ft.vmap(lambda p: p, in_axes={"w": 0}),
    "keys that cannot be sorted": lambda: ft.jit(lambda x: x)({"a": 1.0, 2: 2.0}),
    "no memory": lambda: fnp.ones((10**7, 10**7)),
    "a sharding over an axis that the mesh lacks": lambda: ft.sharding.NamedSharding(
        ft.make_mesh((1,), ("data",)), ft.sharding.P("model")
    ),
    "the format of a number": lambda: f"{X[0]:d}",
}


@pytest.mark.parametrize("name", WITHOUT_FRAMES)
def test_the_traceback_ends_at_the_line_of_the_user(name, monkeypatch):
    monkeypatch.delenv("FT_TRACEBACK", raising=False)
    with pytest.raises(Exception) as caught:
        WITHOUT_FRAMES[name]()
    frames = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert [file for file in frames if source_info.is_ours(file)] == []


@pytest.mark.parametrize("name", ["functorch_like.func", "functorch_like.nn.functional"])
def test_a_missing_module_is_reported_at_the_import(name):
    with pytest.raises(ModuleNotFoundError, match="; use ") as caught:
        exec(f"import {name}", {})
    frames = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert [file for file in frames if source_info.is_ours(file)] == []


def test_what_c_or_numpy_said_is_left_out():
    for wrong in (
        lambda: fnp.zeros(3, "torch.float32"),
        lambda: fnp.asarray([[1, 2], [3]]),
        lambda: ft.tree.map(lambda a, b: a, {"a": 1}, {"b": 1}),
    ):
        error = refusal(wrong).error
        assert error.__cause__ is None and error.__suppress_context__


def test_remedies_of_the_first_programs():
    @dataclasses.dataclass
    class Params:
        w: object

    for transform in ft.jit, ft.vmap:
        remedy = refusal(lambda t=transform: t(lambda x: Params(x))(X), errors.DtypeError).remedy
        says(remedy, "ft.tree.register_dataclass(Params)")
    says(refusal(lambda: ft.jit(lambda x: x > 0 and x < 1)(1.0)).remedy, "combine conditions with &, | and ~")
    says(refusal(lambda: ft.jit(lambda x: max(x, 0.0))(1.0)).remedy, "fnp.maximum")
    says(refusal(lambda: X > 0 & X < 1, errors.DtypeError).remedy, "(x > 0) & (x < 1)")
    says(refusal(lambda: ft.jit(lambda x: f"{x:.2f}")(1.0)).remedy, "ft.debug.print('{:.2f}', x)")
    says(refusal(lambda: ft.jit(lambda x, *, n: fnp.zeros(n) + x)(1.0, n=3)).remedy, "static_argnames")
    says(refusal(lambda: ft.random.uniform(ft.random.key(0), 0.0, 1.0)).remedy, "uniform(key, shape=()")


def test_text_within_an_argument():
    for value in {"a": "x"}, [1.0, "x"]:
        says(refusal(lambda v=value: ft.jit(lambda p: p)(v)).remedy, "out of the container", "ft.tree.static()")
    for call in lambda: ft.jit(lambda x: x)("x"), lambda: ft.jit(lambda *, n: n)(n="x"):
        says(refusal(call).remedy, "make it static")


@pytest.mark.parametrize("command", ["primitives", "backends", "export"])
def test_a_command_ends_quietly_with_its_reader(command, tmp_path):
    arguments = []
    if command == "export":
        arguments = [str(tmp_path / "f.ft"), "--stablehlo"]
        (tmp_path / "f.ft").write_bytes(ft.export.export(ft.jit(fnp.sin))(X).serialize())
    module = [sys.executable, "-m", f"functorch_like.{command}", *arguments]
    with subprocess.Popen(module, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
