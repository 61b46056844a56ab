"""Names that completion offers in public modules, and AttributeErrors for names that do not exist."""

import __future__

import importlib
import re
import subprocess
import sys
import types
import typing
from pathlib import Path

import numpy as np
import pytest

import functorch_like as ft
from functorch_like.foreign import names as foreign_names

DOCS = Path(__file__).parents[2] / "docs"
SHORT = {
    "ft": ft,
    "fnp": ft.numpy,
    "np": np,
    "random": ft.random,
    "lax": ft.lax,
    "nn": ft.nn,
    "tree": ft.tree,
    "extend": ft.extend,
}
#: Classes of NumPy that functions take as dtypes, and other names of NumPy.
OF_NUMPY = {
    "character", "complexfloating", "dtype", "flexible", "floating", "generic", "index_exp", "inexact", "integer",
    "number", "object_", "s_", "signedinteger", "unsignedinteger",
}  # fmt: skip
#: The layer above XLA; and a launcher, which is an attribute only after its import.
NO_NAMESPACES = ("functorch_like.backends.xla", "functorch_like.backends.xeon")


def public_modules():
    """Return the public modules that are reached by attributes of the package."""
    found = {}

    def walk(module):
        found[module.__name__] = module
        for name in dir(module):
            value = getattr(module, name)
            own = isinstance(value, types.ModuleType) and value.__name__ == f"{module.__name__}.{name}"
            if own and value.__name__ not in NO_NAMESPACES:
                walk(value)

    walk(ft)
    return found


MODULES = public_modules()


def test_the_public_modules_are_found():
    assert {
        "functorch_like.numpy.linalg",
        "functorch_like.scipy.stats.norm",
        "functorch_like.backends.mkl",
    } <= MODULES.keys()


@pytest.mark.parametrize("name", MODULES)
def test_dir_lists_public_names_alone(name):
    module = MODULES[name]
    listed = dir(module)
    assert listed == sorted(listed) and listed
    assert [n for n in listed if n.startswith("_")] == []
    strangers = set()
    for n in listed:
        value = getattr(module, n)
        home = (
            value.__name__ if isinstance(value, types.ModuleType) else str(getattr(value, "__module__", None) or name)
        )
        tool = isinstance(value, (__future__._Feature, typing.TypeVar)) or value is typing.Any
        if tool or not home.startswith(("functorch_like", "jaxlib")):
            strangers.add(n)
    aliases = {*ft.typing.__all__, "KeyPath", "KeyEntry"}
    assert strangers <= (OF_NUMPY if name == "functorch_like.numpy" else aliases)


@pytest.mark.parametrize("name", MODULES)
def test_dir_lists_what_a_module_defines(name):
    own = {
        n for n, v in vars(MODULES[name]).items() if not n.startswith("_") and getattr(v, "__module__", None) == name
    }
    values = {n for n in own if isinstance(vars(MODULES[name])[n], (types.FunctionType, type))}
    assert values - set(dir(MODULES[name])) <= {"run", "SupportsDType", "bytes_text", "nearest", "refuse_pickling",
                                                "broadcast_prefix", "leaf_paths"}  # fmt: skip


@pytest.mark.parametrize(
    "name", ["functorch_like", *(f"functorch_like.{n}" for n in ("numpy", "lax", "random", "scipy"))]
)
def test_a_star_imports_what_dir_lists(name):
    namespace: dict = {}
    exec(f"from {name} import *", namespace)
    assert set(dir(sys.modules[name])) <= namespace.keys()


@pytest.mark.parametrize(
    ("module", "name", "near"),
    [
        (ft, "hesian", "'hessian'"), (ft.numpy, "lenspace", "'linspace'"), (ft.numpy.linalg, "invers", "'inv'"),
        (ft.tree, "mpa", "'map'"), (ft.errors, "ShapesError", "'ShapeError'"), (ft.random, "norml", "'normal'"),
        (ft.scipy, "spacial", "'special'"), (ft.scipy.special, "erff", "'erf'"),
        (ft.scipy.stats.norm, "lgpdf", "'logpdf'"),
        (ft.scipy.stats, "bionm", "'binom'"), (ft.backends, "cdua", "'cuda'"), (ft.backends.cuda, "mutmul", "'matmul'"),
        (ft.backends.mkl, "is_availible", "'is_available'"), (ft.primitives, "sinn", "'sin'"),
        (ft.image, "rezise", "'resize'"),
        (ft.nn.initializers, "he_norml", "'he_normal'"), (ft.debug, "prnt", "'print'"), (ft.lax, "scann", "'scan'"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_answered_with_the_nearest(module, name, near):
    with pytest.raises(AttributeError, match=f"{module.__name__}.*no attribute '{name}'; did you mean {near}"):
        getattr(module, name)


def test_an_unknown_name_far_from_all_others():
    with pytest.raises(AttributeError, match=r"no attribute 'qqqqqq'$"):
        _ = ft.qqqqqq


def test_importing_an_unknown_name():
    with pytest.raises(ImportError, match="hesian"):
        from functorch_like import hesian  # noqa: F401


@pytest.mark.parametrize(
    ("module", "old", "new"), [(m, *pair) for m, names in foreign_names.RENAMED.items() for pair in names.items()]
)
def test_renamed(module, old, new):
    first, *rest = new.removesuffix("(f).lower").split(".")
    value = SHORT[first]
    for part in rest:
        value = getattr(value, part)
    with pytest.raises(AttributeError) as e:
        getattr(importlib.import_module(module), old)
    assert str(e.value).endswith(f"; use {new}")


def test_lazy_names_are_not_imported_before_their_use():
    code = (
        "import sys, functorch_like as ft; dir(ft); dir(ft.numpy)\n"
        "names = ['functorch_like.' + n for n in ('lax.linalg', 'random', 'numpy.sets', 'transforms.jacobians')]\n"
        "assert not sys.modules.keys() & set(names)\n"
        "ft.hessian, ft.numpy.union1d, ft.random, ft.lax.linalg\n"
        "assert sys.modules.keys() >= set(names)\n"
        "assert callable(ft.hessian) and ft.numpy.union1d.__module__ == 'functorch_like.numpy'\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_imports_do_not_look_for_near_names():
    code = (
        "import sys, functorch_like as ft, functorch_like.numpy as fnp\n"
        "ft.jit(ft.hessian(lambda x: fnp.sum(fnp.tanh(x[:2] @ x[:2]) ** 2)))(fnp.ones(3))\n"
        "from functorch_like.numpy import quantiles, sets\n"
        "assert 'difflib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_what_was_traced_stays_when_more_modules_are_imported():
    code = (
        "import importlib, pkgutil, functorch_like as ft\n"
        "f = ft.jit(lambda x: x + 1)\n"
        "f(1.0)\n"
        "from functorch_like.backends import xla\n"
        "before = xla.setting_names()\n"
        "for name in ('random', 'nn', 'lax', 'data', 'io', 'numpy', 'scipy', 'sharding', 'experimental', 'debug'):\n"
        "    package = importlib.import_module(f'functorch_like.{name}')\n"
        "    for found in pkgutil.iter_modules(getattr(package, '__path__', ())):\n"
        "        importlib.import_module(f'{package.__name__}.{found.name}')\n"
        "with ft.testing.count_traces() as traces:\n"
        "    f(2.0)\n"
        "assert traces.count == 0 and xla.setting_names() == before\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_a_submodule_that_is_imported_first():
    code = (
        "import functorch_like.transforms.jacobians, functorch_like.random.gammas, functorch_like.debug.explain\n"
        "import functorch_like as ft\n"
        "assert callable(ft.explain) and callable(ft.hessian)\n"
        "assert ft.random.gamma.__module__ == 'functorch_like.random'\n"
        "from functorch_like import tree, checkpoint\n"
        "assert tree is ft.tree and checkpoint.__module__.startswith('functorch_like')\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_what_other_libraries_have():
    for module, names in foreign_names.ELSEWHERE.items():
        for name, text in names.items():
            with pytest.raises(AttributeError) as e:
                getattr(importlib.import_module(module), name)
            assert str(e.value).endswith(f"; {text}")
            pages = [DOCS.parent / page for page in re.findall(r"docs/[\w/]+\.md", text)]
            assert not DOCS.is_dir() or all(page.is_file() for page in pages)
