"""Rules of primitives and derivatives that libraries register under JAX's names."""


def test_primitives_whose_rules_are_registered(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
    cube = Primitive("cube")
    cube.def_impl(lambda x, *, scale: scale * x**3)
    cube.def_abstract_eval(lambda x, *, scale: jax.core.ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(cube, mlir.lower_fun(lambda x, *, scale: scale * x**3, multiple_results=False))
    ad.defjvp(cube, lambda g, x, *, scale: g * 3 * scale * x**2)
    batching.defvectorized(cube)
    f = lambda x: cube.bind(x, scale=2.0)
    x = np.array([1.0, -2.0], np.float32)
    np.testing.assert_allclose(f(x), 2 * x**3)
    np.testing.assert_allclose(jax.jit(f)(x), 2 * x**3)
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(x), 6 * x**2)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(f)))(x), 6 * x**2)

    pair = Primitive("pair")
    pair.multiple_results = True
    pair.def_impl(lambda x: [2 * x, -x])
    pair.def_abstract_eval(lambda x: [x, x])
    along = lambda tangents: pair.bind(*map(ad.instantiate_zeros, tangents))
    ad.primitive_jvps[pair] = lambda primals, tangents: (pair.bind(*primals), along(tangents))
    ad.primitive_transposes[pair] = lambda cts, x: [2 * ad.instantiate_zeros(cts[0]) - ad.instantiate_zeros(cts[1])]
    assert isinstance(pair.bind(x), list)
    np.testing.assert_allclose(jax.grad(lambda x: (3 * pair.bind(x)[0] + pair.bind(x)[1]).sum())(x), [5, 5])
    try:
        jax.vmap(lambda x: pair.bind(x)[0])(x)
    except NotImplementedError as error:
        print("batching.primitive_batchers" in str(error))
    """
    assert run(text) == "True"


def test_primitives_whose_lowerings_need_missing_names_run_on_the_host(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
    seen = []
    def twice_and_sum(x):
        seen.append(type(x))
        return [2 * x, x.sum()]
    p = Primitive("twice")
    p.multiple_results = True
    p.def_impl(twice_and_sum)
    p.def_abstract_eval(lambda x: [x, jax.core.ShapedArray((), x.dtype)])
    def batched(args, dims):
        assert type(args) is tuple and type(dims) is tuple
        return jax.vmap(lambda x: tuple(p.bind(x)), in_axes=dims)(*args), (0, 0)
    def derivative(primals, tangents):
        assert type(primals) is tuple and type(tangents) is tuple
        return p.bind(*primals), p.bind(*tangents)
    ad.primitive_jvps[p] = derivative
    mlir.register_lowering(p, lambda ctx, x: mlir.hlo.no_such_thing(ctx, x))
    a, b = jax.jit(lambda x: p.bind(x))(np.arange(3.0, dtype="float32"))
    print(a, b, len(seen))
    print(jax.jvp(jax.jit(lambda x: p.bind(x)[0]), (jnp.ones(2),), (jnp.ones(2),))[1])
    q = Primitive("nothing")
    q.def_abstract_eval(lambda x: x)
    mlir.register_lowering(q, lambda ctx, x: mlir.hlo.no_such_thing(x))
    try:
        jax.jit(q.bind)(1.0)
    except NotImplementedError as e:
        print(str(e).splitlines()[0])
    """
    assert run(text).splitlines() == [
        "[0. 2. 4.] 3.0 1",
        "[2. 2.]",
        "lowering of nothing_1(f32[]): the lowering rule <lambda> of the primitive nothing needs a name that is "
        "missing: functorch_like has no jax.interpreters.mlir.hlo, which <string>:26 reads under JAX's name",
    ]


def test_primitives_whose_rules_are_methods(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    import jax.extend as jex
    from jax.interpreters import ad, batching, mlir

    class Tag(jex.core.Primitive):
        multiple_results = True

        def __init__(self):
            super().__init__("tag")
            mlir.register_lowering(self, lambda ctx, *args, **params: args)
            ad.primitive_jvps[self] = lambda xs, ts, **params: (self.bind(*xs, **params), list(ts))
            batching.primitive_batchers[self] = lambda xs, dims, **params: (self.bind(*xs, **params), dims)

        def impl(self, *args, name):
            return args

        def abstract_eval(self, *args, name):
            return args, set()

    tag = Tag()
    f = lambda x: tag.bind(x * x, name="square")[0] + 1
    for way in (lambda f: f, jax.jit):
        print(way(f)(2.0), way(jax.grad(f))(2.0), way(jax.vmap(f))(jnp.arange(2.0)))
    assert "callback" not in jax.jit(f).lower(2.0).as_text()  # the implementation is traced
    closed = jax.make_jaxpr(f)(2.0)
    eqn = closed.eqns[1]
    assert eqn.primitive is tag and eqn.params == {"name": "square"} and tag.get_bind_params(eqn.params) == eqn.params
    with eqn.ctx.manager, jex.source_info_util.user_context(eqn.source_info.traceback):
        print(eqn.primitive.bind(3.0, **eqn.params))
    table = jex.core.Primitive("table")
    table.def_impl(lambda x: np.cumsum(np.asarray(x)))  # of NumPy's arrays
    table.def_abstract_eval(lambda x: x)
    mlir.register_lowering(table, lambda ctx, x: mlir.hlo.no_such_thing(x))
    assert jax.jit(table.bind)(jnp.ones(3)).tolist() == [1, 2, 3]
    out, effects = jax.lax.mul_p.abstract_eval(closed.in_avals[0], closed.in_avals[0])
    assert out.shape == () and not effects and jex.source_info_util.summarize(eqn.source_info)
    """
    lines = ["5.0 4.0 [1. 2.]"] * 2
    assert run(text).splitlines()[:2] == lines


def test_a_function_has_rules_of_two_kinds(run):
    text = """
    import jax, jax.numpy as jnp
    @jax.custom_vjp
    @jax.custom_batching.custom_vmap
    def f(x):
        return jnp.sin(x)
    @f.def_vmap
    def rule(axis_size, in_batched, xs):
        return jnp.cos(xs), True
    f.defvjp(lambda x: (f(x), x), lambda x, g: (3.0 * g,))
    assert jax.vmap(f)(jnp.zeros(2)).tolist() == [1.0, 1.0] and jax.grad(f)(0.5) == 3.0
    """
    run(text)


def test_types_of_nodes_and_symbolic_zeros(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax._src.tree_util import _registry
    from jax.interpreters import ad
    class Pair: pass
    jax.tree_util.register_pytree_node(Pair, lambda p: ((), None), lambda data, children: Pair())
    assert all(kind in _registry for kind in (Pair, dict, list, type(None))) and int not in _registry
    children, data = _registry[dict].to_iter({"b": (1, 2), "a": None})
    assert children == [None, (1, 2)] and _registry[dict].from_iter(data, [3, 4]) == {"a": 3, "b": 4}
    assert data == _registry[dict].to_iter({"a": 0, "b": 0})[1] and len(_registry) == len(list(_registry))
    zero = ad.Zero(jax.core.ShapedArray((3,), np.float32))
    leaves, tree = jax.tree.flatten([zero, 1.0])
    assert leaves == [1.0] and jax.tree.unflatten(tree, leaves)[0].aval.shape == (3,)
    out, passed = jax.vmap(lambda x, t: (2 * x, t), in_axes=(0, None))(jnp.arange(2.0), zero)
    assert isinstance(passed, ad.Zero) and out.tolist() == [0, 2]
    print(jnp.iscomplexobj(jax.random.key(0)), jnp.iscomplexobj(np.ones(1, complex)))
    """
    assert run(text) == "False True"


def test_a_value_that_a_rule_of_derivatives_closes_over_is_refused_by_jax_s_name(run):
    text = """
    import jax
    from jax._src.interpreters.ad import CustomVJPException

    def loss(w):
        f = jax.custom_vjp(lambda x: w * x)
        f.defvjp(lambda x: (w * x, x), lambda x, g: (g * w,))
        return f(2.0)

    try:
        jax.grad(jax.jit(loss))(3.0)
    except CustomVJPException as error:
        print("closes over" in str(error))
    """
    assert run(text) == "True"
