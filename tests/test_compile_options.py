"""Tests compile as users do, under the default options, except where they test options."""

import functools
import importlib
import re
from pathlib import Path

import pytest
from support.primitive_samples import all_cases, kind_of, rule_cases

from functorch_like.backends import settings

TESTS = Path(__file__).parent
#: Tests of settings and of the layer that compiles.
FOLDERS = ("backends", "xla")
#: Code that sets options or names them.
SETS = re.compile(
    r"xla\.(options|flags|compiler_options|fast_math)\b|compiler_options=|option_sets|support\.quick"
    r"|mode=\"(fast-compile|max-autotune|reduce-overhead)|xla_(backend|cpu|llvm)_|XLA_FLAGS|tiers *= *\""
)
#: The comment in which any other file gives its reason.
REASON = re.compile(r"^# Other compile options: \w.{10,}", re.MULTILINE)


def test_values_are_computed_under_the_options_of_users():
    files = [p for p in TESTS.rglob("*.py") if p.relative_to(TESTS).parts[0] not in FOLDERS and p != Path(__file__)]
    texts = {str(path.relative_to(TESTS)): path.read_text() for path in files}
    silent = [name for name, text in texts.items() if SETS.search(text) and not REASON.search(text)]
    assert silent == [], "test values under the default options, or write '# Other compile options: why' in the file"
    assert [name for name, text in texts.items() if REASON.search(text) and not SETS.search(text)] == []


def test_no_option_is_in_force_here():
    assert dict(settings.compile_options("cpu")) == {}


def test_rules_of_every_primitive_are_compiled():
    """tests/primitives/test_meaning.py compiles values, tangents, cotangents and batches of these samples."""
    chosen = list(rule_cases())
    assert {c.prim for c in chosen} == {c.prim for c in all_cases()}
    assert {(c.prim, kind_of(c)) for c in chosen} >= {(c.prim, kind_of(c)) for c in all_cases() if kind_of(c)}


#: Namespaces of the functions that users call.
NAMESPACES = (
    "", "numpy", "numpy.linalg", "numpy.fft", "lax", "nn", "random", "image", "ops", "scipy.cluster.vq", "scipy.fft",
    "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal",
    "scipy.sparse.linalg", "scipy.spatial.transform", "scipy.special", "scipy.stats",
)  # fmt: skip
#: Helpers that the package's own files import there.
HELPERS = {"any_order", "arr", "axis_of", "in_double", "mode_of", "public", "shape_of"}


@functools.cache
def named():
    """Return every word of the tests that check values."""
    silent = ("messages", "support", "suite_notices")
    files = [p for p in TESTS.rglob("test_*.py") if p.relative_to(TESTS).parts[0] not in silent]
    return {word for path in files if path != Path(__file__) for word in re.findall(r"\w+", path.read_text())}


@pytest.mark.parametrize("name", NAMESPACES)
def test_every_function_is_called_where_values_are_tested(name):
    module = importlib.import_module(f"functorch_like.{name}".rstrip("."))
    functions = {
        key
        for key in dir(module)
        if not key.startswith("_")
        and callable(value := getattr(module, key))
        and not isinstance(value, type)
        and getattr(value, "__module__", "").startswith("functorch_like")
    }
    assert sorted(functions - named() - HELPERS) == []
