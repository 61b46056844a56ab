"""The examples in docstrings run and print what they show."""

import doctest
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest

# Names that an example may use without importing them.
KNOWN = {
    "ft": "functorch_like", "fnp": "functorch_like.numpy", "lax": "functorch_like.lax", "nn": "functorch_like.nn",
    "random": "functorch_like.random", "np": "numpy",
}  # fmt: skip
# In a source tree two of these lie outside functorch_like's own folder, so each is walked by itself.
PACKAGES = ("functorch_like", "functorch_like.backends", "functorch_like.primitives")


class Finder(doctest.DocTestFinder):
    """Finder of a module's own examples, without those of functions that it re-exports under its own name."""

    def _from_module(self, module, object):
        elsewhere = hasattr(object, "is_boundary") and inspect.unwrap(object).__module__ != module.__name__
        return not elsewhere and super()._from_module(module, object)


#: Packages whose examples need a library that is not a dependency.
NEEDS = {"functorch_like.io": "safetensors"}


def modules() -> list[str]:
    """Return all modules except those whose import runs a program."""
    names = set(PACKAGES)
    for package in PACKAGES:
        paths = importlib.import_module(package).__path__
        names.update(found.name for found in pkgutil.walk_packages(paths, f"{package}."))
    return sorted(name for name in names if not name.endswith("__main__"))


@pytest.mark.parametrize("name", modules())
def test_docstring_examples(name):
    for package, library in NEEDS.items():
        if name.startswith(package):
            pytest.importorskip(library)
    module = importlib.import_module(name)
    known = {alias: importlib.import_module(path) for alias, path in KNOWN.items()}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report: list[str] = []
    with np.printoptions(precision=4, suppress=True, linewidth=120):
        for example in Finder(exclude_empty=True).find(module, globs=known | vars(module)):
            runner.run(example, out=report.append)
    assert runner.failures == 0, "".join(report)


#: Namespaces of functions on arrays: their docstrings name each parameter.
NAMESPACES = (
    "numpy", "numpy.fft", "numpy.linalg", "lax", "lax.linalg", "random", "nn", "nn.initializers", "image", "ops",
    "scipy.fft", "scipy.linalg", "scipy.signal", "scipy.special", "scipy.stats",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMESPACES)
def test_parameters_are_documented(name):
    module = importlib.import_module(f"functorch_like.{name}")
    functions = {k: f for k in dir(module) if inspect.isroutine(f := getattr(module, k))}
    assert functions
    missing = []
    for k, function in functions.items():
        text = (inspect.getdoc(function) or "").partition("Args:")[2]
        stands = set(re.findall(r"\w+", re.split(r"\n\S", text)[0]))
        plain = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
        missing += [f"{k}({p.name})" for p in plain if p.name not in stands and not p.name.startswith("_")]
    assert missing == []


def returns_something(function):
    return inspect.signature(function).return_annotation not in ("None", None)


#: Functions that raise by a statement of their own, and whose docstrings must say when.
RAISES = re.compile(r"\braise (?:promotion\.|_)?(?:error\(|\w+Error\b)")


@pytest.mark.parametrize("name", [*NAMESPACES, ""])
def test_results_errors_and_examples_are_documented(name):
    module = importlib.import_module(f"functorch_like.{name}".rstrip("."))
    missing = []
    for k in dir(module):
        function = getattr(module, k)
        if not inspect.isroutine(function):
            continue
        text = inspect.getdoc(function) or ""
        body = inspect.getsource(inspect.unwrap(function)).rpartition('"""')[2]
        wanted = {"Returns:": returns_something(function), "Raises:": bool(RAISES.search(body)), ">>>": True}
        missing += [f"{k}: {part}" for part, needed in wanted.items() if needed and part not in text]
    assert missing == []
