"""Recorded programs and their parts have the shape of JAX's, under JAX's names."""


def test_recorded_programs_have_jax_s_shape(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.extend import core
    big = np.arange(50.0, dtype=np.float32)
    f = lambda x, y: (jnp.sin(x) * y + big, jax.jit(lambda v: v * 2)(y))
    args = (np.ones(50, np.float32), np.full(50, 3, np.float32))
    closed, shapes = jax.make_jaxpr(f, return_shape=True)(*args)
    assert isinstance(closed, core.ClosedJaxpr) and isinstance(closed.jaxpr, core.Jaxpr) and shapes[0].shape == (50,)
    assert len(closed.consts) == len(closed.jaxpr.constvars) == 1
    assert len(closed.jaxpr.invars) == len(closed.out_avals) == 2
    names = [eqn.primitive.name for eqn in closed.eqns]
    assert names[:3] == ["sin", "mul", "add"] and all(isinstance(v, core.Var) for v in closed.jaxpr.invars)
    inner = list(core.jaxprs_in_params(closed.eqns[-1].params))
    assert len(inner) == 1 and inner[0].eqns[0].invars[1].val == 2
    for found in (jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *args), core.jaxpr_as_fun(closed)(*args)):
        for ours, wanted in zip(found, f(*args)):
            np.testing.assert_allclose(ours, wanted)
    slope = jax.grad(lambda x: core.jaxpr_as_fun(closed)(x, args[1])[0].sum())(args[0])
    np.testing.assert_allclose(slope, np.cos(1) * 3 * np.ones(50), rtol=1e-6)
    """
    run(text)


def test_literals_of_recorded_programs_are_numbers(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.extend import core
    table = np.arange(3.0, dtype=np.float32)
    f = lambda x: (x * table + jnp.asarray([1.0, 2.0, 3.0]), 2 * x, table, jax.jit(lambda v: v - table)(x))
    closed = jax.make_jaxpr(f)(1.0)
    atoms = [v for eqn in closed.eqns for v in eqn.invars] + closed.jaxpr.outvars
    assert all(v.aval.shape == () for v in atoms if isinstance(v, core.Literal))
    assert len(closed.consts) == len(closed.jaxpr.constvars) >= 2
    assert {c.shape for c in closed.consts} == {v.aval.shape for v in closed.jaxpr.constvars} == {(3,)}
    for found in (jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 0.5), core.jaxpr_as_fun(closed)(0.5)):
        for ours, wanted in zip(found, (0.5 * table + [1, 2, 3], 1.0, table, 0.5 - table)):
            np.testing.assert_allclose(ours, wanted)
    """
    run(text)


def test_functions_that_are_traced_with_some_arguments_known(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.api_util import flatten_fun_nokwargs
    from jax.extend import linear_util as lu
    from jax.interpreters import partial_eval as pe
    def f(x, known, keys):
        a, b = jnp.sin(known) * 2, x + known
        return {"known": a, "both": b, "number": 3.0, "drawn": jax.random.uniform(keys[0])}
    avals = [jax.core.ShapedArray((2,), jnp.float32), jax.core.ShapedArray((3,), jnp.result_type(jax.random.key(0)))]
    assert all(isinstance(aval, jax.core.AbstractValue) for aval in avals)
    def traced(known, **options):
        args, tree = jax.tree.flatten((1.0, 2.0, jax.random.split(jax.random.key(0), 3)))
        flat, out_tree = flatten_fun_nokwargs(lu.wrap_init(f), tree)
        pvals = [pe.PartialVal.unknown(avals[0]), pe.PartialVal.known(known), pe.PartialVal.unknown(avals[1])]
        jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(flat, pvals, **options)
        return jax.tree.unflatten(out_tree(), outs), jaxpr, consts
    out, jaxpr, consts = traced(jnp.float32(0.5))
    print([name for name, (aval, _) in out.items() if aval is None], out["both"][0].shape, len(jaxpr.invars))
    print(np.allclose(out["known"][1], np.sin(0.5) * 2), float(out["number"][1]), out["known"].is_known())
    print(all(aval is not None for aval, _ in traced(jnp.float32(0.5), instantiate=True)[0].values()))
    print(jax.jit(jax.grad(lambda k: traced(k)[0]["known"][1]))(0.0))  # what is known may be traced outside
    print(avals[0].sharding.update(spec=()).spec, jnp.nan_to_num(jax.random.key(0)).dtype)
    try:
        jnp.result_type(jax.random.key(0), 1.0)
    except TypeError as e:
        print(str(e).splitlines()[0])
    """
    assert run(text).splitlines() == [
        "['known', 'number'] (2,) 2",
        "True 3.0 True",
        "True",
        "2.0",
        "P() key<fry>",
        "typed keys have no dtype in common with other arrays",
    ]


def test_loops_and_branches_compute_what_is_known(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax import lax
    from jax.extend import linear_util as lu
    from jax.interpreters import partial_eval as pe
    def f(x, known):
        called = jax.jit(lambda x, k: (x + k, jnp.sin(k)))(x, known)
        body = lambda c, step: ((c[0] * step, c[1] + step), (step * 2, c[0], c[1]))
        carry, steps = lax.scan(body, (x, known), known + jnp.arange(3.0))
        loop = lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x, s[2] + known), (0, x, known))
        branch = lax.cond(known > 0, lambda x, k: (x, k), lambda x, k: (x * 2, k * 2), x, known)
        again = jax.checkpoint(lambda x, k: (x * k, jnp.cos(k)))(x, known)
        return [*called, *carry, *steps, *loop, *branch, *again]
    pvals = [pe.PartialVal.unknown(jax.core.ShapedArray((), jnp.float32)), pe.PartialVal.known(jnp.float32(0.5))]
    _, outs, _ = pe.trace_to_jaxpr_nounits(lu.wrap_init(f), pvals)
    print("".join("?" if aval is not None else "k" for aval, _ in outs))
    wanted = [np.sin(0.5), 5.0, [1.0, 3.0, 5.0], [0.5, 1.0, 2.5], 3, 2.0, 0.5, np.cos(0.5)]
    for (_, value), expected in zip([pair for pair in outs if pair[0] is None], wanted, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6)
    """
    assert run(text) == "?k?kk?kk?k?k?k"


def test_programs_are_recorded_for_types_without_arrays(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.api_util import shaped_abstractify
    from jax.extend import linear_util as lu
    from jax.interpreters.partial_eval import trace_to_jaxpr_dynamic
    class Described:
        shape, dtype = (2, 3), np.dtype("int64")
    key = jax.random.key(0)
    given = [jax.ShapeDtypeStruct((2,), "int32"), Described(), jax.ShapeDtypeStruct((), "float32", weak_type=True), 1.0]
    given += [key, jax.eval_shape(lambda: key), jax.ShapeDtypeStruct((4,), key.dtype)]
    for aval in map(shaped_abstractify, given):
        print(aval.shape, aval.dtype, aval.weak_type)
    fun = lambda x, key: [x + jax.random.uniform(key), jax.random.fold_in(key, 1)]
    jaxpr, avals, _ = trace_to_jaxpr_dynamic(lu.wrap_init(fun), list(map(shaped_abstractify, [jnp.ones(2), key])))
    print(len(jaxpr.invars), [aval.shape for aval in avals])
    """
    lines = ["(2,) int32 False", "(2, 3) int32 False", "() float32 True", "() float32 True"]
    lines += ["() key<fry> False"] * 2 + ["(4,) key<fry> False", "2 [(2,), (2,)]"]
    assert run(text).splitlines() == lines


def test_the_number_of_traces(run):
    text = """
    import jax, jax.numpy as jnp
    f = jax.jit(lambda x: x + 1)
    assert f._cache_size() == 0
    f(1.0), f(2.0), f(jnp.ones(3))
    assert f._cache_size() == 2
    f.clear_cache()
    assert f._cache_size() == 0
    """
    run(text)


def test_scalars_stand_beside_arrays_in_recorded_programs(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.extend import core
    x = jnp.arange(6.0).reshape(3, 2)
    kinds = lambda f: [[type(v).__name__ for v in eqn.invars] for eqn in jax.make_jaxpr(f)(x).eqns]
    assert kinds(lambda x: 2 * x + 3) == [["Literal", "Var"], ["Var", "Literal"]]
    assert kinds(lambda x: x - jnp.sum(x)) == [["Var"], ["Var", "Var"]]
    for f in (lambda x: 2 * x + 3, lambda x: jnp.where(x > 1, x, 0.0), lambda x: jnp.zeros((3, 2)) + 1.0 + jnp.sum(x),
              lambda x: jnp.clip(x, 1, 2) ** 2, lambda x: jax.nn.softmax(x) / 3):
        closed = jax.make_jaxpr(f)(x)
        for way in (lambda g: g, jax.jit):
            np.testing.assert_allclose(way(core.jaxpr_as_fun(closed))(x)[0], f(x), rtol=1e-6)
    image = jnp.ones((1, 1, 4, 4))
    (eqn,) = jax.make_jaxpr(lambda x: jax.lax.conv(x, x[:, :, :2, :2], (1, 1), "VALID"))(image).eqns[1:]
    assert eqn.params["dimension_numbers"].lhs_spec == (0, 1, 2, 3)
    assert eqn.primitive.bind(image, image[:, :, :2, :2], **eqn.params).shape == (1, 1, 3, 3)
    silent = jax.make_jaxpr(lambda x: (jax.debug.callback(lambda v: None, x), x + 1)[1])(x)  # a result of no equation
    assert core.jaxpr_as_fun(silent)(x)[0].tolist() == (x + 1).tolist()
    print(jax.lax.add_p.bind(x, 2.0).shape, jax.lax.linalg.cholesky_p.name)
    """
    assert run(text) == "(3, 2) cholesky"


def test_programs_of_one_function_close_over_as_many_values(run):
    text = """
    import jax, jax.numpy as jnp

    def counts(x):
        made, traced, listed = jnp.asarray(0), x.astype(int), jnp.asarray([1.0, 2.0])
        program = lambda *values: jax.make_jaxpr(lambda y: [y + v for v in values])(x)
        return [len(program(v).consts) for v in (made, traced, listed)] + [len(program(made, traced).consts)]

    jax.jit(lambda x: (print(counts(x)), x)[1])(jnp.asarray(2.0))
    inside = jax.make_jaxpr(lambda y: y + jnp.asarray(0))(1.0)
    print(len(inside.consts))
    """
    assert run(text).splitlines() == ["[1, 1, 1, 2]", "0"]


def test_traced_programs_in_jax_s_form(run):
    text = """
    import jax, jax.numpy as jnp
    program = jax.jit(lambda x: jnp.sin(x) * 2).trace(1.0).jaxpr
    assert [e.primitive.name for e in program.eqns] == [e.primitive.name for e in program.jaxpr.eqns] == ["sin", "mul"]
    assert program.jaxpr.outvars[0] is program.eqns[1].outvars[0]
    from jax._src.core import DropVar, Var
    from jax._src.util import safe_map, safe_zip, split_list, unzip2
    assert safe_map(lambda x, y: x + y, [1], [2]) == [3] and safe_zip([1], [2]) == [(1, 2)] and issubclass(DropVar, Var)
    assert split_list([1, 2, 3, 4], [1, 2]) == [[1], [2, 3], [4]] and unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4))
    """
    run(text)


def test_names_of_export(run):
    text = """
    import jax, jax.numpy as jnp
    from jax import export
    scope = export.SymbolicScope(["b >= 2"])
    specs = export.symbolic_args_specs((jnp.ones((2, 3)), jnp.ones(2)), ("b, ...", "b"), scope=scope)
    checks = [export.DisabledSafetyCheck.platform()]
    made = export.export(jax.jit(lambda x, y: (x * y[:, None]).sum(0)), disabled_checks=checks)(*specs)
    print(export.deserialize(made.serialize()).call(jnp.ones((4, 3)), jnp.ones(4)), export.default_export_platform())
    print(export.symbolic_shape("b, _", like=(2, 3)))
    """
    assert run(text).splitlines() == ["[4. 4. 4.] cpu", "(b, 3)"]


def test_results_of_an_evaluated_program_keep_weak_types(run):
    text = """
    import jax, jax.numpy as jnp
    from jax.experimental import checkify
    f = lambda x: (x * 2.0, jax.lax.fori_loop(0, 3, lambda i, c: c * 2.0, x), jax.jit(lambda v: v + 1)(x))
    closed = jax.make_jaxpr(f)(1.0)
    again = lambda x: jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)
    checked = checkify.checkify(f, errors=checkify.all_checks)
    for values in (again(1.0), jax.jit(again)(1.0), checked(1.0)[1], jax.jit(checked)(1.0)[1]):
        assert [float(v) for v in values] == [2.0, 8.0, 2.0]
        assert [(v * jnp.ones(2, jnp.bfloat16)).dtype.name for v in values] == ["bfloat16"] * 3
    """
    run(text)
