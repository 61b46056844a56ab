"""The minifier on faults that are planted in lowerings, on NaN, errors, aborts and differences between runs."""

import contextlib
import os
import subprocess
import sys

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax
from functorch_like.core import TABLE
from functorch_like.debug.minifying import api, failures, script, search


@contextlib.contextmanager
def lowered(name, wrong):
    """Give a primitive another lowering within the block; programs compiled there are not kept."""
    prim = TABLE[name]
    good = prim.lower
    with ft.backends.cache.flags(enabled=False):
        object.__setattr__(prim, "lower", wrong(good))
        ft.clear_caches()
        try:
            yield
        finally:
            object.__setattr__(prim, "lower", good)
            ft.clear_caches()


def wrong_cumsum(good):
    """Return a lowering that computes a reverse cumsum of more than three elements forwards."""
    return lambda e, x, **p: good(e, x, **{**p, "reverse": p["reverse"] and e.ins[0].shape[p["axis"]] <= 3})


def wrong_tanh(good):
    return lambda e, x, **p: e.op("stablehlo.sine", [x], [e.outs[0]])


def names(small):
    return [e.prim.name for e in small.jaxpr.equations]


def loss(params, x):
    for w, b in params:
        h = fnp.tanh(x @ w + b)
        x = x + h * fnp.cumsum(fnp.exp(-x * x), axis=1)  # its derivative is a reverse cumsum
        x = x / fnp.sqrt(fnp.mean(x * x, -1, keepdims=True) + 1e-3)
    return fnp.mean(ft.nn.log_softmax(x)[:, 0])


def test_a_large_gradient_becomes_one_equation():
    rng = np.random.default_rng(0)
    draw = lambda *shape: (rng.normal(size=shape) * 0.3).astype("float32")
    params, x = [(draw(8, 8), draw(8)) for _ in range(1)], draw(4, 8)
    with lowered("cumsum", wrong_cumsum):
        small = ft.debug.minify(ft.jit(ft.grad(loss, (0, 1))), "mismatch")(params, x)
        assert names(small) == ["cumsum"] and small.equations[0] > 30
        assert small.jaxpr.inputs[0].aval.size == 4  # no smaller size fails
        text = small.script
        space: dict = {}
        exec(compile(text, "failing.py", "exec"), space)
        assert not np.allclose(ft.jit(space["f0"])(*space["args"])[0], np.cumsum(space["args"][0][..., ::-1])[::-1])


@pytest.mark.parametrize("kind", ["scan", "cond", "while"])
def test_bodies_are_entered(kind):
    def step(x):
        return fnp.cos(fnp.tanh(x * 2 + 1)) - x

    def f(x):
        if kind == "scan":
            return lax.scan(lambda c, y: (step(c) + y, c), x, fnp.arange(3.0))[0]
        if kind == "cond":
            return lax.cond(fnp.sum(x) > 0, step, lambda x: x, x)
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, step(c[1])), (0, x))[1]

    with lowered("tanh", wrong_tanh):
        small = ft.debug.minify(f)(fnp.asarray([1.0, 2.0]))
    assert names(small) == ["tanh"]


def test_bodies_that_fail_only_in_their_loop_are_thinned():
    def f(x):
        return lax.scan(lambda c, y: (fnp.sin(c) * fnp.exp(y) + fnp.cos(y), fnp.tanh(c)), x, fnp.arange(3.0))

    fails = lambda program: "scan" in [e.prim.name for e in program.jaxpr.equations]
    small = search.Search(api._traced(f, (1.0,), {}), fails, lambda line: None).run()
    (equation,) = small.jaxpr.equations
    assert len(equation.params["jaxpr"].equations) <= 1


def test_nan_comes_from_the_first_equation_that_makes_it():
    f = lambda x: fnp.sum(fnp.sqrt(fnp.log(x) - 1.0) * fnp.sin(x)) ** 2
    small = ft.debug.minify(f, "nan")(fnp.asarray([5.0, 0.5, 7.0]))
    assert names(small) == ["sqrt"] and small.jaxpr.inputs[0].aval.shape == (1,)


def test_errors_of_the_compiler():
    def refuse(good):
        def lower(e, x, **p):
            raise errors.CompileError("refused", fix="none")

        return lower

    with lowered("tan", refuse):
        small = ft.debug.minify(lambda x: fnp.exp(fnp.tan(fnp.sin(x)) + 1), "error")(fnp.ones((3, 4)))
    assert names(small) == ["tan"] and small.jaxpr.inputs[0].aval.shape == (1, 1)


def test_the_user_says_what_fails():
    fails = lambda g, *args: any(np.asarray(o).max(initial=0) > 100 for o in g(*args))
    small = ft.debug.minify(lambda x: fnp.exp(x * 2) * 3 + fnp.sin(x), fails)(4.0)
    assert names(small) == ["exp"]


def test_scripts_hold_loops_and_all_kinds_of_parameters(capsys):
    def f(x, k):
        x = lax.scan(lambda c, y: (c * y, c), x, fnp.arange(1.0, 4.0))[1]
        return fnp.where(x[k] > 0, x.astype("bfloat16").astype("float32").sum(), x.at[k].add(1.0) @ fnp.ones(3))

    small = ft.debug.minify(f, lambda g, *args: True)(2.0, 1)
    assert small.equations[1] <= 1
    program = api._traced(ft.jit(f), (2.0, 1), {})  # not minified
    exec(compile(script.script(program, "mismatch"), "failing.py", "exec"), {})
    shown = capsys.readouterr().out
    assert shown.count("(8.") == 2  # 2 + 2 + 4, compiled and by the reference


def test_aborts_are_found_in_processes_of_their_own(tmp_path, monkeypatch):
    program = api._traced(fnp.sin, (1.0,), {})
    fails = failures.failure("abort", failures.Tolerance(None, None))
    assert not fails(program)
    monkeypatch.setattr(failures, "script", lambda *args: "import os\nos.abort()\n")
    assert fails(program)


def test_the_command(tmp_path):
    file, out = tmp_path / "program.py", tmp_path / "failing.py"
    file.write_text(
        "import functorch_like.numpy as fnp\n\n\ndef f(x):\n    return fnp.sum(fnp.log(x) * 2)\n\n\n"
        "args = (fnp.asarray([1.0, -1.0]),)\n"
    )
    command = [sys.executable, "-P", "-m", "functorch_like.minify", f"{file}:f", "--fails", "nan", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "FT_CACHE": "0"}, check=False)
    assert done.returncode == 0, done.stderr
    assert "4 equations to 1" in done.stdout and "TABLE['log']" in out.read_text()
    refused = subprocess.run([*command[:4], f"{file}:g"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "has no function 'g'" in refused.stderr


def test_bad_input():
    with pytest.raises(errors.ArgumentError, match="does not fail: nan"):
        ft.debug.minify(fnp.sin, "nan")(1.0)
    with pytest.raises(errors.ArgumentError, match="'error', 'abort', 'nan'"):
        ft.debug.minify(fnp.sin, "crash")
    with pytest.raises(errors.ArgumentError, match="takes a function"):
        ft.debug.minify(3)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="outside of jit"):
        ft.jit(lambda x: ft.debug.minify(lambda y: x * y, "nan")(1.0))(2.0)
    callback = lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((), "float32"), x)
    called = lambda program: "pure_callback" in [e.prim.name for e in program.jaxpr.equations]
    small = search.Search(api._traced(callback, (1.0,), {}), called, lambda line: None).run()
    with pytest.raises(errors.UnsupportedError, match="cannot name"):
        script.script(small, "custom")
