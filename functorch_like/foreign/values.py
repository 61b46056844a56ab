"""Remedies for values that are not arrays: objects of other libraries, text, functions, containers."""

from __future__ import annotations

import dataclasses
from typing import Any

_PROTOCOLS = ("__jax_array__", "__array__", "__array_interface__", "__dlpack__")
ANY = "pass an array, a NumPy array or a number (fnp.asarray turns a list into an array)"


def quote(x: Any) -> str:
    """A value as one line of at most 60 characters; one that prints as several lines is not shown."""
    try:
        text = repr(x)
    except RecursionError:
        return "a deeply nested value"
    if "\n" in text:
        return "a value"
    return text if len(text) < 60 else text[:57] + "..."


def remedy(x: Any) -> str:
    """Return the remedy for a value that is not an array."""
    if type(x) is dict:
        return "compute with each of its arrays: ft.tree.map(f, x); ft.io.save writes trees of arrays"
    return _of_library(x) or ANY


def result_remedy(x: Any) -> str:
    """Return the remedy for a value that is not an array among the results of a function."""
    name = type(x).__name__
    if name == "generator":
        return "a function with `yield` gives a generator: collect the values in a list, and return it"
    if name == "coroutine":
        return "an `async` function gives a coroutine: leave out `async`, and await outside of the function"
    if isinstance(own := getattr(type(x), "_remedy", None), str):
        return own
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return f"register its class as a container of arrays: ft.tree.register_dataclass({name})"
    return "return arrays, numbers, None, or pytrees of these"


def transformation_remedy(kind: str) -> str:
    """Return how values of a type reach the function that a transformation is given."""
    if kind in ("str", "bytes", "function", "builtin_function_or_method", "type"):
        return "close over it: ft.grad(lambda w: f(w, value))"
    if kind in ("list", "tuple", "dict"):
        return "compute with each of its arrays: ft.tree.map(f, x)"
    return f"register its class as a container of arrays: ft.tree.register_dataclass({kind})"


def _is_text_or_function(x: Any) -> bool:
    """Return True for text and functions; False for other objects that can be called, such as models."""
    return isinstance(x, (str, bytes)) or (callable(x) and hasattr(x, "__name__"))


def _of_library(x: Any) -> str:
    """Return how a value of another library becomes an array, or an empty text."""
    kind = type(x)
    if isinstance(own := getattr(kind, "_remedy", None), str):  # arrays of this package in formats of their own
        return own
    library = kind.__module__.partition(".")[0]
    if hasattr(kind, "to_numpy"):  # tables and columns: pandas, polars
        return f"pass the values of the {kind.__name__}, without its labels: x.to_numpy(), or x.to_numpy('float32')"
    if library == "scipy" and hasattr(kind, "toarray"):
        return (
            "pass x.toarray() to have it dense; or BCOO.from_scipy_sparse(x), of functorch_like.experimental.sparse, "
            "which stays sparse"
        )
    protocol = next((name for name in _PROTOCOLS if hasattr(kind, name)), None)
    if protocol:
        convert = "fnp.from_dlpack" if protocol == "__dlpack__" else "fnp.asarray"
        return f"convert it: a {kind.__name__} has {protocol}, so pass {convert}(x)"
    if type(x).__name__ in ("generator", "map", "zip", "filter"):
        return "make a list of its elements first, and an array of that: fnp.asarray(list(x))"
    if kind in (set, frozenset):
        return "a set has no order: make an array of its sorted elements, fnp.asarray(sorted(x))"
    return ""


def argument_remedy(x: Any, nested: bool = False) -> str:
    """`remedy` for an argument of a jitted function, which may be static, or a pytree, or `nested` in one."""
    result = _of_library(x)
    if result:
        return result
    if _is_text_or_function(x) and nested:
        return (
            "keep it out of the container, as an argument that is static; or in a dataclass of "
            "ft.tree.register_dataclass, in a field: name: str = ft.tree.static()"
        )
    if _is_text_or_function(x):
        return "make it static: jit(static_argnums=...) or static_argnames; or close over it"
    return (
        "pass arrays, numbers, or containers of these; register the class of an object, and of `self` in a method: "
        "ft.tree.register_dataclass; or make the argument static: jit(static_argnums=...)"
    )


#: What a user means who passes a second array to a function whose second parameter is an axis.
_SECOND_ARRAYS = {
    "fnp.max": "the larger elements of two arrays are fnp.maximum(a, b)",
    "fnp.min": "the smaller elements of two arrays are fnp.minimum(a, b)",
    "fnp.sum": "the sum of two arrays is a + b",
    "fnp.prod": "the product of two arrays is a * b",
    "fnp.all": "both of two conditions are a & b",
    "fnp.any": "one of two conditions is a | b",
    "fnp.concatenate": "arrays to join go in one list: fnp.concatenate([a, b])",
    "fnp.stack": "arrays to join go in one list: fnp.stack([a, b])",
}


def axis_facts(axis: Any, name: str, what: str) -> tuple[str, str]:
    """Return the reason and the remedy of the error for an axis that is not an int.

    Args:
        axis: the value.
        name: name of the parameter.
        what: name of the function that got it.
    """
    if not getattr(axis, "ndim", 0):
        fix = (
            "axes are fixed when a function is traced: give an int, which is a static argument of jit (static_argnums)"
        )
        return f"{what}: {name}={quote(axis)} is not an int", fix
    several = _SECOND_ARRAYS.get({"fnp.amax": "fnp.max", "fnp.amin": "fnp.min"}.get(what, what))
    fix = f"give an int; {several}" if several else "give an int"
    return f"{what}: {name} is an array of shape {axis.shape}, not an int", fix
