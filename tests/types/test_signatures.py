"""Types in public signatures: `Any`, and no type, may only become rarer. `Array` has what type checkers are told."""

import ast
import importlib
import inspect
import pickle
import pydoc
import re
import types
from pathlib import Path

import pytest

import functorch_like as ft
from functorch_like.foreign_methods import Renamed

ANY = re.compile(r"\bAny\b")
#: The most places without a type, by the beginning of the module's name. Lower them where a count has fallen.
MOST = {
    "functorch_like": 310,
    "functorch_like.numpy": 380,
    "functorch_like.lax": 270,
    "functorch_like.random": 40,
    "functorch_like.nn": 20,
    "functorch_like.scipy": 660,
    "functorch_like.tree": 60,
    "functorch_like.backends": 20,
    "functorch_like.testing": 40,
}


def modules():
    found = {}

    def walk(module):
        found[module.__name__] = module
        for name in dir(module):
            value = getattr(module, name)
            own = isinstance(value, types.ModuleType) and value.__name__ == f"{module.__name__}.{name}"
            if own and value not in (ft.backends.xla, ft.primitives):
                walk(value)

    walk(ft)
    return found


def untyped(function):
    """How many parameters and results of a function are `Any`, or have no type."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return 0
    types_said = [p.annotation for p in signature.parameters.values() if p.name != "self"]
    return sum(
        t is inspect.Parameter.empty or bool(ANY.search(str(t))) for t in [*types_said, signature.return_annotation]
    )


def counts():
    """The count of each public function and method, under its module's name; a function of two modules counts once."""
    seen, found = set(), {}
    for name, module in modules().items():
        for n in dir(module):
            value = getattr(module, n)
            members = (
                [v for k, v in vars(value).items() if not k.startswith("_")] if isinstance(value, type) else [value]
            )
            if isinstance(value, types.ModuleType) or value is ft.Array:
                continue
            if isinstance(value, type) and not value.__module__.startswith("functorch_like"):
                continue
            for function in members:
                plain = inspect.unwrap(function) if callable(function) else function
                if callable(plain) and not isinstance(plain, type) and id(plain) not in seen:
                    seen.add(id(plain))
                    found[name] = found.get(name, 0) + untyped(function)
    return found


def group(name):
    return max((g for g in MOST if name == g or name.startswith(g + ".")), key=len)


def test_public_signatures_have_types():
    total = dict.fromkeys(MOST, 0)
    for name, count in counts().items():
        total[group(name)] += count
    assert {g: n for g, n in total.items() if n > MOST[g]} == {}, "give new functions types (functorch_like.typing)"
    assert {g: n for g, n in total.items() if n < MOST[g] - 40} == {}, "lower MOST, so that it stays so"


STUB = Path(ft.__file__).parent / "arrays/array_type.pyi"
#: jaxlib's own, for which users have no use.
HIDDEN = {"clone", "on_device_size_in_bytes", "platform", "traceback", "unsafe_buffer_pointer", "unsafe_raw_buffer"}


def stub_members():
    (cls,) = (
        node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ClassDef) and node.name == "Array"
    )
    return {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}


def test_type_checkers_are_told_what_arrays_have():
    told, has = stub_members(), vars(type(ft.numpy.ones(1)))
    has = {name: value for name, value in has.items() if not isinstance(value, Renamed)}
    assert [name for name in told if name not in has] == []
    assert [name for name in has if not name.startswith("_") and name not in told.keys() | HIDDEN] == []


@pytest.mark.parametrize("name", [n for n in stub_members() if not n.startswith("__")])
def test_parameters_of_methods(name):
    node, value = stub_members()[name], vars(type(ft.numpy.ones(1)))[name]
    if not isinstance(value, types.FunctionType):
        return
    parameters = list(inspect.signature(value).parameters.values())[1:]
    a = node.args
    said = [x.arg for x in [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs]][1:]
    assert said == [p.name for p in parameters]


def test_help_lists_what_arrays_can_do():
    text = pydoc.render_doc(ft.Array, renderer=pydoc.plaintext)
    assert "class Array in module functorch_like" in text and "An array: immutable elements" in text
    assert [name for name in stub_members() if f" {name}" not in text] == []


def test_classes_of_arrays_have_names_that_lead_to_them():
    x = ft.numpy.ones(2)
    assert repr(ft.Array) == "<class 'functorch_like.Array'>" and "functorch_like" in repr(type(x))
    assert pickle.loads(pickle.dumps(ft.Array)) is ft.Array and pickle.loads(pickle.dumps(type(x))) is type(x)


def test_names_in_signatures_are_public():
    typing = importlib.import_module("functorch_like.typing")
    assert set(typing.__all__) >= {"ArrayLike", "DTypeLike", "Axis", "Shape", "Index", "Jitted"}
