"""Two interpreters written outside the package: one prints primitives as they run, one counts operations."""

import math

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import extend


# ------------------------------------------------------------------------------------- an interpreter, from here ...
class Shown(extend.Tracer):
    __slots__ = ("value",)

    def __init__(self, trace, value):
        self._trace, self.value = trace, value

    aval = property(lambda self: extend.aval_of(self.value))


class Show(extend.Trace):
    __slots__ = ()

    def process(self, prim, args, params):
        values = [a.value if extend.mine(self, a) else a for a in args]
        if "jaxpr" in params:  # a call that jit recorded: evaluate its body
            out = extend.evaluate_jaxpr(params["jaxpr"], [Shown(self, v) for v in values])
            return out if prim.multiple_results else out[0]
        with extend.set_current_trace(self.parent):
            out = prim(*values, **params)
        print(prim.name, *map(extend.aval_of, values))
        return [Shown(self, o) for o in out] if prim.multiple_results else Shown(self, out)


def show(fun):
    def shown(*args):
        with extend.new_trace(Show("show", extend.current_trace())) as trace:
            return fun(*[Shown(trace, a) for a in args]).value

    return shown  # ... to here


def layer(w, x):
    return fnp.tanh(w @ x)


W, X = np.ones((2, 3), np.float32), np.arange(3, dtype=np.float32)
LINES = ["dot_general f32[2,3] f32[3]", "tanh f32[2]"]


def test_primitives_are_printed_as_they_run(capsys):
    np.testing.assert_allclose(show(layer)(W, X), np.tanh(W @ X), rtol=1e-6)
    assert capsys.readouterr().out.splitlines() == LINES


def test_what_jit_compiled_is_looked_into(capsys):
    np.testing.assert_allclose(show(ft.jit(layer))(W, X), np.tanh(W @ X), rtol=1e-6)
    assert capsys.readouterr().out.splitlines() == LINES


def test_it_composes_with_the_package_s_transformations(capsys):
    slope = ft.grad(lambda x: show(lambda v: fnp.sin(v))(x))
    np.testing.assert_allclose(slope(1.0), math.cos(1), rtol=1e-6)
    assert capsys.readouterr().out.splitlines() == ["sin f32[]"]
    inside = show(ft.grad(fnp.sin))
    np.testing.assert_allclose(inside(np.float32(1)), math.cos(1), rtol=1e-6)
    lines = capsys.readouterr().out.splitlines()
    assert "sin f32[]" in lines and "cos f32[]" in lines
    batched = ft.vmap(show(fnp.sin))
    np.testing.assert_allclose(batched(X), np.sin(X), rtol=1e-6)
    assert capsys.readouterr().out.splitlines() == ["sin f32[]"]


# ----------------------------------------------------------------------------------------------- counting operations
def operations(fun, *args):
    """Count the floating-point operations of a function by walking its jaxpr."""

    def one(equation):
        if "jaxpr" in equation.params:
            return sum(map(one, equation.params["jaxpr"].equations))
        out = math.prod(equation.outputs[0].aval.shape)
        if equation.prim.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            return 2 * out * math.prod(equation.inputs[0].aval.shape[d] for d in contracted)
        if equation.prim.name.startswith("reduce_"):
            return math.prod(equation.inputs[0].aval.shape) - out
        free = {"broadcast_in_dim", "reshape", "transpose", "convert_element_type", "copy", "iota"}
        return 0 if equation.prim.name in free else out

    jaxpr = ft.make_jaxpr(fun)(*args)
    return sum(map(one, getattr(jaxpr, "jaxpr", jaxpr).equations))


def test_operations_are_counted():
    assert operations(layer, W, X) == 2 * 2 * 3 + 2
    assert operations(ft.jit(layer), W, X) == 2 * 2 * 3 + 2
    assert operations(lambda x: fnp.sum(x * x), X) == 3 + 2
    forward_and_back = operations(ft.grad(lambda w: fnp.sum(layer(w, X))), W)
    assert forward_and_back > operations(layer, W, X)
