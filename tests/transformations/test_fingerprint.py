"""Programs on disk are found by what they compute, without being lowered."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import core
from functorch_like.compiler.fingerprint import _sources, fingerprint

X = np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3)


def of(f, *args, parts=()):
    return fingerprint(ft.make_jaxpr(f)(*args), *parts)


def f(x, y):
    return fnp.sum(ft.jit(fnp.tanh)(x) @ y, axis=0)


def test_equal_programs_are_found_equal_and_others_not():
    base = of(f, X, X.T)
    assert base is not None and base == of(lambda a, b: f(a, b), X, X.T)
    others = [
        of(f, X.astype(np.float64), X.T.astype(np.float64)),
        of(f, X.T, X),
        of(lambda x, y: fnp.sum(ft.jit(fnp.tanh)(x) @ y, axis=1), X, X.T),
        of(lambda x, y: fnp.sum(ft.jit(fnp.sinh)(x) @ y, axis=0), X, X.T),  # differs inside the call only
        of(lambda x, y: f(x, y) + 0.0, X, X.T),
        of(lambda x, y: f(x, y) + -0.0, X, X.T),
        of(lambda x, y: (f(x, y), x), X, X.T),
        of(f, X, X.T, parts=("gpu",)),
    ]
    assert None not in others and len({base, *others}) == len(others) + 1


def test_operands_in_another_order_are_another_program():
    assert of(lambda x, y: x - y, X, X) != of(lambda x, y: y - x, X, X)
    assert of(lambda x, y: (x, y), X, X) != of(lambda x, y: (y, x), X, X)


def test_what_was_defined_elsewhere_has_none():
    twice = core.Primitive(
        "twice_for_fingerprints",
        shape=lambda x: x,
        ref=lambda x: 2 * x,
        lower=lambda e, x: e.op("stablehlo.add", [x, x], e.outs),
        jvp=core.NotDefined("none"),
        transpose=core.NotDefined("none"),
        batch=core.NotDefined("none"),
        samples=list,
    )
    try:
        assert of(lambda x: twice(x), X) is None
        assert of(lambda x: ft.jit(lambda x: twice(x))(x), X) is None
        np.testing.assert_array_equal(ft.jit(lambda x: twice(x))(X), 2 * X)
    finally:
        ft.extend.forget(twice)


PROGRAM = """
import sys
import numpy as np
import functorch_like as ft, functorch_like.numpy as fnp
x = np.ones((3, 4), np.float32)
out = ft.jit(ft.grad(lambda x: fnp.sum(fnp.tanh(x) @ x.T)))(x)
total = fnp.ones(3) + 1
print(ft.backends.xla.counters.modules, "jaxlib.mlir.ir" in sys.modules, np.asarray(out).sum(), total[0])
"""


def test_a_second_process_lowers_nothing_and_loads_no_mlir(tmp_path):
    env = {**os.environ, "FT_CACHE": "1", "FT_CACHE_DIR": str(tmp_path / "cache")}
    runs = [
        subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    first, second = (run.stdout.split() for run in runs)
    assert int(first[0]) > 0 and first[1] == "True"
    assert second[:2] == ["0", "False"]
    assert first[2:] == second[2:]


def test_settings_are_part_of_it():
    # The jaxpr is the same whatever the default dtype is, but its lowering may depend on it.
    jaxpr = ft.make_jaxpr(fnp.tanh)(X)
    before = fingerprint(jaxpr)
    ft.set_default_dtype("float64")
    try:
        assert fingerprint(jaxpr) != before
    finally:
        ft.set_default_dtype("float32")
    assert fingerprint(jaxpr) == before


def test_the_code_of_every_primitive_and_of_the_compiler_counts():
    """If a file were left out, programs from before a change of it would still be loaded from disk."""
    package = Path(ft.__file__).parent
    whole = [Path(ft.primitives.__file__).parent, Path(ft.backends.__file__).parent]
    whole += [package / name for name in ("ir", "interpreters", "compiler", "sharding")]
    wanted = {path.resolve() for folder in whole for path in folder.rglob("*.py")} | set(package.resolve().glob("*.py"))
    assert {Path(entry.path).resolve() for entry in _sources()} == wanted and len(wanted) > 200
