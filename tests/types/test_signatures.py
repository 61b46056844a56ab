"""Types in public signatures: `Any` and missing types may only become rarer. `Array` has what its stub declares."""

import ast
import importlib
import inspect
import json
import pickle
import pydoc
import re
import subprocess
import sys
import types
import typing
from pathlib import Path

import pytest

import functorch_like as ft
from functorch_like.foreign.methods import Renamed

ANY = re.compile(r"(?<!dtype\[)(?<!ndarray\[Any, )(?<!ndarray\[)\bAny\b")
#: For a parameter, `PyTree` is the narrowest true type. For a result it is as vague as `Any`.
ANY_RESULT = re.compile(ANY.pattern + r"|\bPyTree\b")
#: The most places without a type, by prefix of the module's name. Lower them where a count has fallen.
MOST = {
    "functorch_like": 193,
    "functorch_like.numpy": 9,
    "functorch_like.lax": 4,
    "functorch_like.random": 0,
    "functorch_like.nn": 1,
    "functorch_like.scipy": 3,
    "functorch_like.tree": 25,
    "functorch_like.backends": 9,
    "functorch_like.testing": 14,
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
    """Return the parameters and results of a function, or of its overloads, that are `Any` or have no type."""
    plain = inspect.unwrap(function)
    return [place for f in typing.get_overloads(plain) or [function] for place in _untyped(f)]


def _untyped(function):
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    places = [
        p.name
        for p in signature.parameters.values()
        if p.name not in ("self", "cls") and (p.annotation is p.empty or ANY.search(str(p.annotation)))
    ]
    returned = signature.return_annotation
    return places + ["->"] * (returned is signature.empty or bool(ANY_RESULT.search(str(returned))))


def counts():
    """Return places without a type by module, then by function or method; a function of two modules is under one."""
    seen, found = set(), {}
    for name, module in modules().items():
        for n in dir(module):
            value = getattr(module, n)
            members = {f"{n}.{k}": v for k, v in vars(value).items()} if isinstance(value, type) else {n: value}
            if isinstance(value, types.ModuleType) or value is ft.Array:
                continue
            if isinstance(value, type) and not value.__module__.startswith("functorch_like"):
                continue
            for called, function in members.items():
                if "._" in called:
                    continue
                plain = inspect.unwrap(function) if callable(function) else function
                if callable(plain) and not isinstance(plain, type) and id(plain) not in seen:
                    seen.add(id(plain))
                    if places := untyped(function):
                        found.setdefault(name, {})[called] = places
    return found


def group(name):
    return max((g for g in MOST if name == g or name.startswith(g + ".")), key=len)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="newer Pythons write some annotations in other words")
def test_public_signatures_have_types():
    # In a process of its own: the names that modules have, and their order, depend on earlier uses.
    told = subprocess.run([sys.executable, "-P", __file__], capture_output=True, text=True, check=True)
    places = {g: {} for g in MOST}
    for name, functions in json.loads(told.stdout).items():
        places[group(name)].update({f"{name}.{function}": found for function, found in functions.items()})
    total = {g: sum(map(len, found.values())) for g, found in places.items()}
    above = {g: places[g] for g in MOST if total[g] > MOST[g]}
    assert above == {}, "give new functions types (functorch_like.typing)"
    assert {g: n for g, n in total.items() if n < MOST[g]} == {}, "lower MOST, so that it stays so"


STUB = Path(ft.__file__).parent / "arrays/array_type.pyi"
#: jaxlib's own attributes, which users do not need.
HIDDEN = {"clone", "on_device_size_in_bytes", "platform", "traceback", "unsafe_buffer_pointer", "unsafe_raw_buffer"}


def stub_members():
    (cls,) = (
        node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ClassDef) and node.name == "Array"
    )
    return {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}


def test_the_stub_of_arrays_is_complete():
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


def test_the_class_of_an_array_is_called_as_users_know_it():
    assert repr(ft.Array) == repr(type(ft.numpy.ones(2))) == "<class 'functorch_like.Array'>"
    assert pickle.loads(pickle.dumps(ft.Array)) is ft.Array
    with pytest.raises(TypeError, match="'Array'"):
        ft.numpy.ones(2) + object()


def test_names_in_signatures_are_public():
    typing = importlib.import_module("functorch_like.typing")
    assert set(typing.__all__) >= {"ArrayLike", "DTypeLike", "Axis", "Shape", "Index", "Jitted"}


if __name__ == "__main__":
    print(json.dumps(counts()))
