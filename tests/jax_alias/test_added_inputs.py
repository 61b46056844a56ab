"""Libraries whose state is outside of their functions, such as brainstate: inputs of a program that they add to it."""

LIBRARY = """
    import jax
    from jax._src.core import trace_ctx
    from jax._src.interpreters.batching import BatchTracer
    from jax._src.sharding_impls import UNSPECIFIED
    from jax._src.source_info_util import current
    from jax.api_util import shaped_abstractify
    from jax.extend.core import jaxpr_as_fun

    class State:
        def __init__(self, value):
            self.value = value

    def recorded(f, state, *args):
        def fun(*args):
            old, trace = state.value, trace_ctx.trace
            state.value = jax.tree.map(lambda x: trace.new_arg(shaped_abstractify(x), source_info=current()), old)
            try:
                return f(*args), state.value
            finally:
                state.value = old
        return jax.make_jaxpr(fun)(*args)

    def compiled(f, state, in_shardings=UNSPECIFIED, out_shardings=UNSPECIFIED):
        def call(*args):
            out, state.value = jitted(state.value, *args)
            return out
        def whole(value, *args):
            return jaxpr_as_fun(recorded(f, State(value) if state is None else state, *args))(*args, value)
        jitted = jax.jit(whole, in_shardings=in_shardings, out_shardings=out_shardings)
        return call

    def place(x):
        return x.batch_dim if isinstance(x, BatchTracer) else None
"""


def test_inputs_are_added_to_a_program(run, library):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    import library
    state = library.State(jnp.arange(2.0))
    def f(x):
        state.value = state.value + x
        return (state.value * x).sum()
    program = library.recorded(f, state, 3.0)
    assert [v.aval.shape for v in program.jaxpr.invars] == [(), (2,)] and not program.consts
    assert state.value.tolist() == [0.0, 1.0]
    total, after = library.jaxpr_as_fun(program)(3.0, np.array([5.0, 7.0], "f"))
    assert float(total) == 54.0 and after.tolist() == [8.0, 10.0]
    step = library.compiled(f, state)
    assert float(step(3.0)) == 21.0 and state.value.tolist() == [3.0, 4.0]
    assert float(step(1.0)) == 9.0 and state.value.tolist() == [4.0, 5.0]
    slope = jax.grad(lambda v: library.jaxpr_as_fun(program)(2.0, v)[0])(jnp.ones(2))
    assert slope.tolist() == [2.0, 2.0]
    places = []
    jax.vmap(lambda x, y: places.append((library.place(x), library.place(y))) or x, (1, None))(jnp.ones((2, 3)), 1.0)
    assert places == [(1, None)]
    assert library.trace_ctx.trace is library.trace_ctx.trace and repr(library.UNSPECIFIED) == "UnspecifiedValue"
    """
    run(text, paths=[library(LIBRARY)])


def test_typed_keys_of_programs(run, library):
    text = """
    import jax, jax.numpy as jnp
    from jax.extend.core import jaxpr_as_fun
    import library
    key = jax.random.key(3)
    f = lambda key, x: {"draw": jax.random.normal(key) * x, "keys": jax.random.split(key), "again": key}
    want = f(key, 2.0)
    program, shapes = jax.make_jaxpr(f, return_shape=True)(key, 2.0)
    same = lambda a, b: a.dtype == b.dtype and jnp.array_equal(jax.random.key_data(a), jax.random.key_data(b))
    for apply in (
        lambda *args: jax.core.eval_jaxpr(program.jaxpr, program.consts, *args),
        jaxpr_as_fun(program), jax.jit(jaxpr_as_fun(program)), jaxpr_as_fun(program.replace(consts=program.consts)),
    ):
        again, draw, keys = apply(key, 2.0)
        assert same(again, key) and same(keys, want["keys"]) and jnp.allclose(draw, want["draw"])
        assert jax.tree.structure(shapes) == jax.tree.structure(dict(again=again, draw=draw, keys=keys))
    # Keys among the state of a library.
    state = library.State({"key": key, "sum": jnp.zeros(())})
    def draw(x):
        key, now = jax.random.split(state.value["key"])
        state.value = {"key": key, "sum": state.value["sum"] + jax.random.normal(now) * x}
        return x + 1
    program = library.recorded(draw, state, 2.0)
    assert state.value["key"] is key and len(program.jaxpr.invars) == 2 + 1
    out, after, total = jaxpr_as_fun(program)(2.0, key, jnp.ones(()))
    first, second = jax.random.split(key)
    assert float(out) == 3.0 and same(after, first) and jnp.allclose(total, 1 + 2 * jax.random.normal(second))
    assert not key.is_deleted() and not jax.vmap(lambda k: jnp.full((), k.is_deleted()))(want["keys"]).any()
    """
    run(text, paths=[library(LIBRARY)])
