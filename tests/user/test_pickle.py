"""Functions, structures, dtypes and arrays through pickle, copy, new processes and cloudpickle."""

# Other compile options: a jitted function keeps those it was given through pickle.

from __future__ import annotations

import copy
import functools
import importlib
import multiprocessing
import os
import pickle
import subprocess
import sys
import types
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest
from support import importable
from support.importable import Model, Pair, plain

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, random, tree

X = np.linspace(0.1, 0.9, 3).astype("f")


def again(value: Any, **options: Any) -> Any:
    return pickle.loads(pickle.dumps(value, **options))


NAMED = {
    "jitted": importable.jitted,
    "powered": importable.powered,
    "donating": importable.donating,
    "slope": importable.slope,
    "mapped": importable.mapped,
    "both": importable.both,
    "saving": importable.saving,
    "ruled_forward": importable.ruled_forward,
    "ruled_backward": importable.ruled_backward,
    "Model.apply": Model.apply,
    "Model.doubled": Model.doubled,
}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", NAMED)
def test_a_decorated_function_pickles_by_its_name(name: str, protocol: int) -> None:
    f = NAMED[name]
    assert again(f, protocol=protocol) is f
    assert len(pickle.dumps(f)) < 100  # only the name is stored


MADE: dict[str, Any] = {
    "jit": ft.jit(plain),
    "jit of grad": ft.jit(ft.grad(plain)),
    "jit of vmap of grad": ft.jit(ft.vmap(ft.grad(plain), in_axes=(0, None))),
    "jit of a decorated function": ft.jit(importable.jitted),
    "grad of a decorated function": ft.grad(importable.ruled_backward),
    "grad": ft.grad(plain),
    "value_and_grad": ft.value_and_grad(plain),
    "grad_and_value": ft.grad_and_value(plain),
    "vmap": ft.vmap(plain, in_axes=(0, None)),
    "jacfwd": ft.jacfwd(plain),
    "jacrev": ft.jacrev(plain),
    "hessian": ft.hessian(plain),
    "checkpoint": ft.checkpoint(plain),
    "named_call": ft.named_call(plain, name="plain"),
    "vectorize": fnp.vectorize(plain),
    "composite": lax.composite(importable.jitted, "my.cosine"),
    "of fnp": ft.jit(fnp.cumsum),
    "grad of fnp": ft.jit(ft.grad(fnp.sum)),
    "of a partial": ft.jit(functools.partial(plain, y=3.0)),
    "of a method": ft.jit(Model(fnp.ones(3)).apply),
    "static": ft.jit(plain, static_argnames="y"),
}


@pytest.mark.parametrize("name", MADE)
def test_what_a_transformation_made_pickles_as_the_call_that_made_it(name: str) -> None:
    f = MADE[name]
    g = again(f)
    given = (0.3,) if "grad" in name and "vmap" not in name else (X,)
    given += (2.0,) if "vmap" in name else ()
    for a, b in zip(tree.leaves(f(*given)), tree.leaves(g(*given)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert getattr(g, "__name__", "") == getattr(f, "__name__", "")


def test_options_of_jit_come_along() -> None:
    f = again(ft.jit(plain, static_argnums=1, donate_argnums=0, keep_unused=True, mode="fast-compile"))
    x = fnp.asarray(X)
    with pytest.warns(UserWarning, match="not usable"):  # the result is smaller than x
        f(x, 2.0)
    with pytest.warns(UserWarning, match="not usable"):
        lowered = f.lower(fnp.asarray(X), 2.0)
    assert lowered.args_info[0][0].donated
    assert f._made_by[2]["mode"] == "fast-compile"
    assert f._made_by[2]["keep_unused"] is True


@pytest.mark.parametrize("name", [*NAMED, *MADE])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_of_functions_are_the_functions(name: str, copied: Any) -> None:
    f = {**NAMED, **MADE}[name]
    assert copied(f) is f
    assert copied({"f": f})["f"] is f  # so that structures with functions in them stay equal


def test_a_function_without_a_name_is_refused_by_pickle_itself() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(ft.jit(lambda x: x))


def test_transformed_functions_still_are_functions_to_users() -> None:
    g = ft.grad(plain)
    assert (g.__name__, g.__doc__) == ("plain", "Not transformed.")
    assert "grad" in repr(g)
    assert "plain" in repr(g)

    class Holder:
        slope = ft.grad(lambda self, x: x * x, argnums=1)

    assert float(Holder().slope(3.0)) == 6


# ------------------------------------------------------------------------------------------------------- other things
TREES = [
    1.0,
    None,
    {"a": (1, None, [2]), "b": Pair(1, {"c": 2})},
    OrderedDict(b=1, a=(2, 3)),
    defaultdict(list, a=[1]),
    Model(1.0, "first"),
    [Model(Model(1.0), "outer"), ()],
]


@pytest.mark.parametrize("value", TREES, ids=str)
def test_structures(value: Any) -> None:
    structure = tree.structure(value)
    for other in (again(structure), copy.deepcopy(structure), copy.copy(structure)):
        assert other == structure
        assert hash(other) == hash(structure)
        assert tree.structure(other.unflatten(tree.leaves(value))) == structure


@pytest.mark.parametrize(
    "name", ["float32", "bfloat16", "int4", "bool_", "float8_e4m3fn", "complex64", "uint8", "float4_e2m1fn"]
)
def test_scalar_types_and_arrays_of_them(name: str) -> None:
    kind = getattr(fnp, name)
    assert again(kind) is kind
    assert copy.deepcopy(kind) is kind
    x = fnp.ones(3, kind)
    for other in (again(x), copy.deepcopy(x)):
        assert other.dtype == x.dtype
        assert other.tolist() == x.tolist()
    assert again(x.dtype) == x.dtype


def test_keys_devices_and_modules() -> None:
    key = random.key(3)
    assert again(key).tolist() == key.tolist()
    assert random.normal(again(key)) == random.normal(key)
    device = ft.devices()[0]
    assert again(device) == device
    assert copy.deepcopy(device) == device
    assert again(ft.Array) is ft.Array
    for module in (ft, fnp, ft.random, ft.lax, ft.nn, ft.backends, ft.backends.cpu):
        if type(module) is not types.ModuleType:  # cloudpickle handles plain modules
            assert again(module) is module
            assert copy.deepcopy(module) is module


def test_a_copy_inside_of_a_traced_function() -> None:
    assert float(ft.jit(lambda x: copy.deepcopy({"a": x})["a"] * 2)(1.5)) == 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: ft.make_jaxpr(plain)(X),
        lambda: ft.jit(plain).trace(X),
        lambda: ft.jit(plain).lower(X),
        lambda: ft.jit(plain).lower(X).compile(),
    ],
)
def test_programs_say_what_to_pickle_instead(make: Any) -> None:
    with pytest.raises(ft.errors.ArgumentError, match=r"cannot be pickled(.|\n)*ft.export"):
        pickle.dumps(make())


_MODULES = (
    "", ".numpy", ".numpy.linalg", ".numpy.fft", ".lax", ".lax.linalg", ".random", ".nn", ".nn.initializers", ".tree",
    ".tree_util", ".image", ".ops", ".scipy.special", ".scipy.linalg", ".scipy.stats", ".scipy.signal", ".scipy.fft",
    ".scipy.optimize", ".scipy.ndimage", ".scipy.integrate", ".scipy.interpolate", ".scipy.sparse.linalg", ".debug",
    ".checkify", ".testing", ".errors", ".checkpoint_policies", ".custom_batching", ".experimental.ode",
)  # fmt: skip


@pytest.mark.parametrize("module", _MODULES)
def test_public_functions_pickle_by_name(module: str) -> None:
    home = importlib.import_module(f"functorch_like{module}")
    names = getattr(home, "__all__", None) or [n for n in dir(home) if not n.startswith("_")]
    count = 0
    for name in names:
        value = getattr(home, name)
        if callable(value) and type(value).__name__ not in (
            "GenericAlias",
            "_CallableGenericAlias",
            "Primitive",
            "Product",
        ):
            assert again(value) is value, name
            assert copy.deepcopy(value) is value, name
            count += 1
    assert count


# ---------------------------------------------------------------------------------------------------------- processes
def test_functions_go_to_spawned_processes() -> None:
    functions = [importable.jitted, ft.jit(ft.grad(plain)), ft.vmap(ft.grad(plain)), fnp.cos, Model(2.0).apply]
    inputs = [0.25, 0.25, np.full(1, 0.25, "f"), 0.25, 0.25]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.starmap(importable.call, list(zip(functions, inputs, strict=True)))
    expected = [3 * np.cos(0.25), 2 * np.cos(0.25), 2 * np.cos(0.25), np.cos(0.25), 0.5]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


_SCRIPT = """
import functools, sys
import cloudpickle
import functorch_like as ft
import functorch_like.numpy as fnp
SCALE = 3.0
@ft.jit
def jitted(x):
    return fnp.sin(x) * SCALE
@functools.partial(ft.jit, static_argnums=1)
def powered(x, n):
    return x ** n
@ft.grad
def slope(x):
    return jitted(x) * 2
@ft.custom_vjp
def ruled(x):
    return x
ruled.defvjp(lambda x: (x, None), lambda _, ct: (7 * ct,))
mapped = ft.jit(ft.vmap(lambda x: jitted(x)))
made = [jitted, lambda x: powered(x, 2), slope, ft.grad(ruled), mapped, lambda x: ft.nn.relu(x)]
cloudpickle.dump(made, open(sys.argv[1], "wb"))
"""


def test_cloudpickle_carries_what_a_script_defines(tmp_path: Any) -> None:
    pytest.importorskip("cloudpickle")
    where = str(tmp_path / "functions")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    subprocess.run([sys.executable, "-c", _SCRIPT, where], check=True, env=environment)
    with open(where, "rb") as file:
        made = pickle.load(file)
    x = 0.5
    found = [float(fnp.sum(f(np.full(1, x, "f") if i == 4 else x))) for i, f in enumerate(made)]
    np.testing.assert_allclose(found, [3 * np.sin(x), x**2, 6 * np.cos(x), 7, 3 * np.sin(x), x], rtol=1e-6)
