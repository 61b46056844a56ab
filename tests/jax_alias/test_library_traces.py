"""Traces and tracers that a library defines, `jax.core.Trace` and `Tracer`, and parameters that its rules get."""

LIBRARY = """
import jax, jax.numpy as jnp, numpy as np
import jax.extend.linear_util as lu
from jax.extend.core import TraceTag, set_current_trace, take_current_trace

class Counted(jax.core.Tracer):
    __slots__ = ("value",)

    def __init__(self, trace, value):
        self._trace, self.value = trace, value

    aval = property(lambda self: jax.core.get_aval(self.value))

class Counting(jax.core.Trace):
    def __init__(self, parent, seen):
        super().__init__()
        self.parent_trace, self.seen = parent, seen

    def value(self, x):
        return x.value if isinstance(x, Counted) and x._trace.seen is self.seen else x

    def process_primitive(self, primitive, tracers, params):
        self.seen.append((primitive.name, params))
        values = [self.value(x) for x in tracers]
        avals = [jax.typeof(v) for v in values]
        out = primitive.bind_with_trace(self.parent_trace, values, avals, params)
        return [Counted(self, o) for o in out] if primitive.multiple_results else Counted(self, out)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        values = [self.value(x) for x in tracers]
        subfuns = under(fun, self.seen), under(jvp, self.seen)
        params = dict(subfuns=subfuns, symbolic_zeros=symbolic_zeros)
        out = primitive.bind_with_trace(self.parent_trace, values, [jax.typeof(v) for v in values], params)
        return [Counted(self, o) for o in out]

@lu.transformation
def under(seen, *args):
    with take_current_trace() as parent:
        trace = Counting(parent, seen)
        with set_current_trace(trace):
            out = yield [Counted(trace, a) for a in args], {}
            out = [trace.value(o) for o in out]
    yield out

def counted(f, seen):
    def g(*args):
        with take_current_trace() as parent:
            trace = Counting(parent, seen)
            with set_current_trace(trace):
                out = f(*[Counted(trace, a) for a in args])
            return trace.value(out)
    return g
"""


def test_a_librarys_trace_gets_every_primitive(run, library):
    text = """
    from library import *
    seen = []
    f = lambda x: jnp.sum(jnp.sin(x) * 2 + jax.jit(jnp.cos)(x))
    x = np.array([0.0, 1.0, 2.0])
    g = counted(f, seen)
    value, slope = np.sum(2 * np.sin(x) + np.cos(x)), 2 * np.cos(x) - np.sin(x)
    x = jnp.asarray(x)
    np.testing.assert_allclose(g(x), value, rtol=1e-6)
    names = [name for name, _ in seen]
    assert [n for n in names if n != "broadcast_in_dim"] == ["sin", "mul", "call", "add", "reduce_sum"], names
    assert dict(seen)["call"]["name"] == "cos"
    for under in (jax.jit(g), counted(g, [])):
        np.testing.assert_allclose(under(x), value, rtol=1e-6)
    for derivative in (jax.grad(g), jax.jit(jax.grad(g)), counted(jax.grad(f), seen), jax.jacfwd(g)):
        np.testing.assert_allclose(derivative(x), slope, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(g)(x[:, None]), [f(x[i]) for i in range(3)], rtol=1e-6)
    np.testing.assert_allclose(counted(jax.vmap(jnp.sin), seen)(x), np.sin(np.asarray(x)), rtol=1e-6)
    assert isinstance(get_trace := Counting(None, []), jax.core.Trace) and TraceTag() != TraceTag()
    assert not isinstance(3, jax.core.Trace)
    """
    run(text, paths=[library(LIBRARY)])


def test_functions_with_rules_under_a_librarys_trace(run, library):
    text = """
    from library import *

    @jax.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), 3 * jnp.cos(x) * y * dx + jnp.sin(x) * dy  # three times the true derivative by x

    seen = []
    g = counted(f, seen)
    np.testing.assert_allclose(g(1.0, 2.0), 2 * np.sin(1.0), rtol=1e-6)
    assert [n for n, _ in seen] == ["sin", "mul"], seen
    for way in (jax.grad(g, (0, 1)), jax.jit(jax.grad(g, (0, 1))), lambda *a: counted(jax.grad(f), [])(*a)):
        slopes = way(1.0, 2.0)
        np.testing.assert_allclose(slopes if np.ndim(slopes) == 0 else slopes[0], 6 * np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(g, (1.0, 2.0), (0.5, 0.0))[1], 3 * np.cos(1.0), rtol=1e-6)
    points = jnp.arange(3.0)
    batch = jax.vmap(jax.grad(g), (0, None))(points, 2.0)
    np.testing.assert_allclose(batch, 6 * np.cos(np.arange(3.0)), rtol=1e-5)

    class Plain(Counting):
        process_custom_jvp_call = jax.core.Trace.process_custom_jvp_call

    with take_current_trace() as parent:
        trace = Plain(parent, [])
        with set_current_trace(trace):
            try:
                f(Counted(trace, 1.0), 2.0)
            except Exception as e:
                print(type(e).__name__, "process_custom_jvp_call" in str(e))
    """
    assert run(text, paths=[library(LIBRARY)]) == "UnsupportedError True"


def test_parameters_have_the_names_of_jax(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    f = jax.custom_jvp(lambda x, y: jnp.sin(x) * y)
    f.defjvp(lambda p, t: (f(*p), 3 * jnp.cos(p[0]) * p[1] * t[0] + jnp.sin(p[0]) * t[1]))
    eqn, = jax.make_jaxpr(f)(1.0, 2.0).eqns
    assert eqn.params["num_consts"] == 0 and [e.primitive.name for e in eqn.params["call_jaxpr"].eqns] == ["sin", "mul"]
    params = eqn.primitive.get_bind_params(eqn.params)
    fun, jvp = params["subfuns"]
    np.testing.assert_allclose(fun.call_wrapped(1.0, 2.0), [2 * np.sin(1.0)], rtol=1e-6)
    np.testing.assert_allclose(jvp.call_wrapped(1.0, 2.0, 1.0, 0.0), [2 * np.sin(1.0), 6 * np.cos(1.0)], rtol=1e-6)
    for params in (eqn.params, params):  # bind takes both
        again = lambda x, y: eqn.primitive.bind(x, y, **params)[0]
        for way in (jax.grad(again), jax.jit(jax.grad(again))):
            np.testing.assert_allclose(way(1.0, 2.0), 6 * np.cos(1.0), rtol=1e-6)

    shapes = jax.make_jaxpr(lambda x: jnp.exp(x.reshape(2, 3)).sum() * 2)(jnp.ones(6))
    params = {e.primitive.name: e.params for e in shapes.eqns}
    assert params["reshape"] == {"new_sizes": (2, 3), "dimensions": None, "sharding": None}, params
    assert params["exp"] == {"accuracy": None} and params["reduce_sum"]["out_sharding"] is None
    x = jnp.arange(6.0)
    assert jax.lax.reshape_p.bind(x, new_sizes=(2, 3), dimensions=None, sharding=None).shape == (2, 3)
    assert jax.lax.broadcast_in_dim_p.bind(1.0, shape=(2,), broadcast_dimensions=(), sharding=None).shape == (2,)
    assert float(jax.lax.erf_p.bind(0.0, accuracy=None)) == 0
    assert params["mul"] == {} and jax.lax.mul_p.bind(x, x, out_dtype=None)[3] == 9
    assert jax.lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None) == 15
    try:
        jax.lax.reshape_p.bind(x, new_sizes=(2, 3), dimensions=(0,), sharding=None)
    except Exception as e:
        print(type(e).__name__)

    call, = jax.make_jaxpr(jax.jit(lambda x: x + 1, inline=False))(1.0).eqns
    assert not call.params["inline"] and len(call.params["jaxpr"].eqns) == 1
    assert call.primitive.bind(2.0, **{**call.params, "name": "other"})[0] == 3
    stopped, = jax.make_jaxpr(jax.lax.stop_gradient)(1.0).eqns
    assert stopped.primitive is jax.lax.stop_gradient_p
    """
    assert run(text) == "UnsupportedError"


def test_rules_for_missing_primitives_are_never_used(run, library):
    paths = [library("import jax\nrules = {jax.lax.infeed_p: 1}\np = jax.lax.infeed_p\n")]
    text = """
    import jax, library
    from jax.extend.core import Primitive
    assert isinstance(library.p, Primitive) and not hasattr(jax.lax, "infeed_p")
    try:
        library.p.bind(1.0)
    except NotImplementedError as e:
        print("jax.lax.infeed_p" in str(e))
    """
    assert run(text, paths=paths) == "True"


def test_a_librarys_tracer_gives_its_base_the_aval(run, library):
    text = """
    from library import *

    class Plain(jax.core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, jax.typeof(value))
            self.value = value

    class Slotted(jax.core.Tracer):
        __slots__ = ("value",)

        def __init__(self, trace, value):
            super().__init__(trace, jax.typeof(value))
            self.value = value

    class Named(Counting):
        def value(self, x):
            return x.value if isinstance(x, (Plain, Slotted)) else x

        def process_primitive(self, primitive, tracers, params):
            self.seen.append(primitive.name)
            values = [self.value(x) for x in tracers]
            out = primitive.bind_with_trace(self.parent_trace, values, [jax.typeof(v) for v in values], params)
            return type(tracers[0])(self, out)

    ones = jnp.ones(3, "float16")
    for kind in (Plain, Slotted):
        with take_current_trace() as parent:
            trace = Named(parent, [])
            with set_current_trace(trace):
                x = kind(trace, ones)
                assert x.shape == (3,) and x.dtype == "float16" and jax.typeof(x).shape == (3,)
                out = jnp.exp(jnp.sin(x))
            assert type(out) is kind and trace.seen == ["sin", "exp"], trace.seen
            np.testing.assert_allclose(out.value, np.exp(np.sin(np.ones(3))), rtol=1e-3)
    """
    run(text, paths=[library(LIBRARY)])


def test_a_librarys_trace_gets_cond_and_switch_of_known_indices(run, library):
    text = """
    from library import *
    branches = (lambda x: x + 1, lambda x: 2 * x)
    f = lambda x: (jax.lax.cond(True, *branches, x), jax.lax.switch(1, branches, x))
    for under in (lambda g: g, jax.jit):
        seen = []
        out = under(lambda x: jnp.stack([*counted(lambda x: jnp.stack(f(x)), seen)(x)]))(3.0)
        assert out.tolist() == [4.0, 6.0]
        found = [params for name, params in seen if name == "cond"]
        assert [len(params["branches"]) for params in found] == [2, 2], seen
    """
    run(text, paths=[library(LIBRARY)])
