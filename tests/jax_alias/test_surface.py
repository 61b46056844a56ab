"""Parts of JAX that libraries use besides functions: settings, programs, primitives with rules, meshes, listeners."""

import pytest


def test_settings_by_jax_s_names(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    assert jnp.zeros(1).dtype == "float32" and not jax.config.jax_enable_x64
    with jax.enable_x64(True):
        assert jnp.zeros(1).dtype == "float64" and jnp.arange(2).dtype == "int64" and jax.config.jax_enable_x64
    assert jnp.arange(2).dtype == "int32"
    jax.config.update("jax_enable_x64", True)
    assert jnp.zeros(1).dtype == "float64" and jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", False)
    jax.config.update("jax_numpy_rank_promotion", "raise")
    for refused in (lambda: jnp.ones(3) + jnp.ones((2, 3)), lambda: jax.config.update("jax_no_such_option", 1)):
        try:
            refused()
        except ValueError as error:
            print(type(error).__name__)
    jax.config.update("jax_numpy_rank_promotion", "allow")
    jax.config.update("jax_disable_jit", True)
    seen = []
    jax.jit(lambda x: seen.append(float(x)) or x)(2.0)
    jax.config.update("jax_disable_jit", False)
    with jax.debug_nans(True):
        try:
            jnp.log(-1.0)
        except FloatingPointError:
            seen.append("nan")
    jax.config.update("jax_compilation_cache_dir", "/nowhere")
    print(seen, jax.config.jax_compilation_cache_dir, jax.config.values["jax_debug_nans"])
    """
    assert run(text).splitlines() == ["ShapeError", "ArgumentError", "[2.0, 'nan'] /nowhere False"]


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


def test_meshes_and_placements(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
    jax.config.update("jax_num_cpu_devices", 2)
    mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))
    assert isinstance(mesh, Mesh) and isinstance(P("d"), P) and jax.sharding.get_abstract_mesh().empty
    where = NamedSharding(mesh, P("d"))
    x = jax.device_put(np.arange(4.0), where)
    y = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, where), out_shardings=where)(x)
    assert len(y.addressable_shards) == 2 and y.sharding.spec == P("d") and mesh.axis_types == (AxisType.Auto,)
    with jax.set_mesh(mesh):
        split = NamedSharding(jax.sharding.get_abstract_mesh(), P("d"))
        assert jax.jit(lambda x: x + 1, in_shardings=split, out_shardings=split)(np.arange(4.0)).sharding == where
    assert jax.typeof(y).sharding.mesh.empty and not jax.typeof(y).vma
    seen = []
    jax.debug.inspect_array_sharding(y, callback=seen.append)
    assert seen[0].spec == P("d") and len(seen[0].device_set) == 2
    jax.debug.visualize_array_sharding(y)
    assert jax.typeof(jax.random.key(0)).dtype == jax.random.key(1).dtype
    state = jax._src.distributed.global_state
    assert (state.process_id, state.num_processes) == (0, 1)
    from jax.experimental.layout import Format
    assert jax.device_put(1.0, Format(None, where.update(spec=P()))).sharding.spec == P()
    assert where._addressable_device_assignment == tuple(jax.devices())
    assert jnp.ones(2).sharding._addressable_device_assignment == (jax.devices()[0],)
    print(y.tolist(), jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")(jnp.ones((2, 3))).tolist())
    """
    *picture, last = run(text).splitlines()
    assert "| CPU 0 | CPU 1 |" in picture and last == "[0.0, 2.0, 4.0, 6.0] [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]"


def test_helpers_of_libraries(run):
    text = """
    import inspect
    import jax, jax.numpy as jnp, numpy as np
    from jax import monitoring
    from jax.api_util import flatten_fun, flatten_fun_nokwargs
    from jax.extend import linear_util as lu
    from jax.test_util import check_grads
    heard = []
    monitoring.register_event_listener(lambda event, **details: heard.append((event, details)))
    monitoring.record_event("started", by="me")
    args, tree = jax.tree.flatten(((1, {"a": 2}), {"b": 3}))
    flat, out_tree = flatten_fun(lu.wrap_init(lambda x, y, b: {"sum": x + y["a"] + b}), tree)
    assert flat.call_wrapped(*args) == [6] and jax.tree.unflatten(out_tree(), [6]) == {"sum": 6}

    @lu.transformation2
    def doubled(f, factor, *args):
        return f(*(factor * a for a in args))

    assert doubled(lu.wrap_init(lambda a, b: a + b), 3).call_wrapped(1, 2) == 9
    store = lu.Store()
    store.store(1)
    try:
        store.store(2)
    except lu.StoreException:
        store.reset()
    store.store(3)
    assert store.val == 3
    from jax._src.api_util import infer_argnums_and_argnames as infer
    signature = inspect.signature(lambda a, b, *, c: None)
    assert infer(signature, (0, 1), None) == ((0, 1), ("a", "b")) and infer(signature, None, "b") == ((1,), ("b",))
    assert infer(signature, 0, ("c",)) == ((0,), ("c",)) and infer(signature, None, None) == ((), ())
    assert infer(signature, None, ("a", "c")) == ((0,), ("a", "c"))
    from jax._src.dtypes import to_complex_dtype
    assert [to_complex_dtype(d).itemsize for d in ("float32", "float64", "int32")] == [8, 16, 8]
    with jax.enable_x64(True):
        check_grads(lambda x: jnp.sin(x) * x, (np.array([0.5, 2.0]),), order=2)
    wrong = jax.custom_jvp(jnp.sin)
    wrong.defjvps(lambda g, out, x: 2 * g)
    try:
        check_grads(wrong, (np.array(0.5),), order=1)
    except AssertionError:
        heard.append("wrong")
    assert jax.core.trace_state_clean() and not jax.jit(lambda x: x * jax.core.trace_state_clean())(1)
    x = jnp.ones(2)
    print(heard, isinstance(x, jax.Array), jax.Array.sum(x), issubclass(type(x), jax.Array))
    """
    assert run(text) == "[('started', {'by': 'me'}), 'wrong'] True 2.0 True"


def test_sparse_arrays(run):
    text = """
    import jax, jax.numpy as jnp
    from jax.experimental import sparse
    m = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    print((m @ jnp.ones(2)).tolist(), sparse.BCSR.from_bcoo(m), isinstance(m, sparse.JAXSparse))
    """
    assert run(text).splitlines() == ["[2.0, 3.0] BCSR(float32[2, 2], nse=2) True"]


def test_submodules_of_sparse_arrays(run):
    text = """
    import importlib, warnings
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import sparse
    from jax.experimental.sparse import random
    from jax.experimental.sparse.csr import csr_matvec
    warnings.simplefilter("ignore", sparse.CuSparseEfficiencyWarning)
    names = {"ad": "grad", "api": "todense", "bcoo": "bcoo_eliminate_zeros", "bcsr": "BCSR", "coo": "coo_matmat",
             "csr": "CSC", "linalg": "spsolve", "random": "random_bcoo", "transform": "sparsify",
             "util": "SparseEfficiencyError"}
    for module, name in names.items():
        assert hasattr(importlib.import_module("jax.experimental.sparse." + module), name), module
    assert sparse.random is random and not hasattr(random, "CSR") and sparse.coo.COO is sparse.COO
    m = sparse.CSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    x = sparse.BCOO.fromdense(jnp.ones((1, 1, 3)))
    y = sparse.bcoo_conv_general_dilated(x, x, window_strides=(1,), padding="VALID", out_sharding=None)
    print(csr_matvec(m, jnp.ones(2)).tolist(), m.T, y.todense().tolist())
    """
    assert run(text) == "[2.0, 3.0] CSC(float32[2, 2], nse=2) [[[3.0]]]"


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


def test_errors_of_checks_start_with_the_user_s_message_and_platforms_are_there_once_used(run):
    text = """
    import jax, jax.numpy as jnp
    from jax._src import xla_bridge
    from jax.experimental import checkify
    print(len(xla_bridge._backends or {}))
    def f(x):
        checkify.check(x > 0, "too small: {}", x)
        return x
    error, _ = checkify.checkify(jax.vmap(f))(jnp.array([1.0, -2.0]))
    try:
        checkify.check_error(error)
    except checkify.JaxRuntimeError as e:
        print(str(e).splitlines()[0])
    print(list(xla_bridge._backends))
    """
    first, told, last = run(text).splitlines()
    assert first == "0" and told == "too small: -2.0 (at mapped index 1)" and "cpu" in last


def test_what_suites_of_libraries_ask_for(run):
    text = """
    import io
    import jax, jax.numpy as jnp, numpy as np
    from jax.custom_derivatives import custom_jvp_call_p, custom_vjp_call_p
    from jax.extend.core.primitives import add_p, checkpoint_p, custom_lin_p, jit_p, name_p, remat_p, while_p
    aval = jax.core.ShapedArray(shape=[2], dtype=jnp.float32, weak_type=True, sharding=None)
    print(isinstance(aval, jax.core.ShapedArray), type(jax.typeof(jnp.ones(2))) is type(aval))
    print(aval.strip_weak_type().shape)
    print(isinstance(jnp.ones(2, "bfloat16")[0].item(), float), isinstance(jax.dtypes.bfloat16(1), jax.dtypes.bfloat16))
    jnp.save(file := io.BytesIO(), 1e-8)
    file.seek(0)
    print(np.load(file).item() == 1e-8, jnp.ones(2).committed)
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    print([e.primitive is custom_jvp_call_p for e in jax.make_jaxpr(f)(1.0).eqns])
    """
    assert run(text).splitlines() == ["True True", "(2,)", "True True", "True False", "[True]"]


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


def test_traced_values_are_not_hashable_and_pass_the_way_to_the_host(run):
    text = """
    import jax, jax.numpy as jnp
    from collections.abc import Hashable
    def f(x):
        try:
            hash(x)
        except TypeError as e:
            print(isinstance(x, Hashable), "unhashable" in str(e))
        return x.sum()
    x = jnp.ones((2, 2))
    f(x), jax.grad(f)(x), jax.vmap(f)(x), jax.jit(f)(x)
    same = lambda x: jnp.sin(jax.device_get({"x": x, "name": "x", "host": jnp.ones(2)})["x"])
    print(jax.grad(same)(0.0), jax.jit(same)(0.0), type(jax.device_get([x, 1.0])[0]).__name__)
    """
    assert run(text).splitlines() == ["False True"] * 4 + ["1.0 0.0 ndarray"]


def test_flags_of_absl_have_their_defaults(run):
    pytest.importorskip("absl")
    text = """
    import jax
    from absl import flags
    flags.DEFINE_string("where", "here", "")
    jax.config.parse_flags_with_absl()
    print(flags.FLAGS.where)
    """
    assert run(text) == "here"


def test_derivatives_of_functions_of_numbers_are_checked(run):
    text = """
    import jax, jax.numpy as jnp
    from jax.test_util import check_grads
    check_grads(lambda x: jnp.sin(x["a"]) * x["b"], ({"a": 1.0, "b": 2.0},), 2)
    check_grads(lambda x, n: x**n, (1.5, 3), 1)
    wrong = jax.custom_jvp(jnp.sin)
    wrong.defjvp(lambda primals, tangents: (jnp.sin(*primals), tangents[0]))
    try:
        check_grads(wrong, (1.0,), 1)
    except AssertionError:
        print("differs")
    """
    assert run(text) == "differs"


def test_positions_out_of_bounds_are_those_of_jax(run):
    text = """
    import jax, jax.numpy as jnp
    x = jnp.arange(6.).reshape(2, 3)
    for way in (lambda f: f, jax.jit):
        print(way(lambda x: x[5, 1:])(x), way(lambda x: x[..., -7])(x), way(lambda x: x[-4, jnp.array([0, 9])])(x))
        assert (way(lambda x: x.at[2].set(9.).at[0, -4].add(9.).at[:, 3].multiply(9.))(x) == x).all()
        assert way(lambda x: x.at[0, 7].get(mode="fill", fill_value=8.))(x) == 8
        print(way(jax.grad(lambda x: x[7, 0]))(x).tolist())
    from jax.scipy.spatial.transform import Rotation
    turns = Rotation.from_rotvec(jnp.ones((2, 3)))
    assert len(list(turns)) == 2 and len(list(x)) == 2 and len(list(jax.random.split(jax.random.key(0), 3))) == 3
    try:
        x[:0][0]
    except IndexError:
        print("empty")
    """
    rows = ["[4. 5.] [0. 3.] [0. 2.]", "[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]"]
    assert run(text).splitlines() == [*rows, *rows, "empty"]


def test_trees_of_arrays_are_compared_within_tolerances_by_dtype(run):
    text = """
    import jax.numpy as jnp, numpy as np
    from jax._src.public_test_util import check_close
    check_close({"a": jnp.ones(3), "b": 1}, {"a": np.ones(3) + 1e-6, "b": 1.0})
    check_close(jnp.ones(2), jnp.ones(2) + 1e-2, atol={"float32": 1e-2})
    check_close(jnp.ones(2, "bfloat16"), jnp.ones(2, "bfloat16") + 1e-2)
    for wrong in (jnp.ones(3) + 1e-4, jnp.ones(2), [jnp.ones(3)], jnp.ones(3, "bfloat16") + 0.1):
        try:
            check_close(jnp.ones(3), wrong)
        except AssertionError:
            print("differs")
    """
    assert run(text).split() == ["differs"] * 4


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


def test_all_names_are_imported_at_once(run):
    text = """
    from jax.numpy import *
    from jax.tree_util import *
    from jax.lax import *
    assert linspace(0, 1, 2).tolist() == [0.0, 1.0] and tree_leaves([1]) == [1] and register_dataclass
    import jax
    assert "fft" in jax.numpy.__all__ and not [n for n in jax.numpy.__all__ if n.startswith("_")]
    """
    run(text)


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


def test_exceptions_of_callbacks_are_jax_s(run):
    text = """
    import jax, jax.numpy as jnp
    from jax.experimental import io_callback

    class Refused(ValueError):
        pass

    def refuse(x):
        if x > 1:
            raise Refused("too large")
        return x

    shape = jax.ShapeDtypeStruct((), "float32")
    pure = lambda x: jax.pure_callback(refuse, shape, x)
    ordered = lambda x: io_callback(refuse, shape, x, ordered=True)
    watched = lambda x: (jax.debug.callback(refuse, x), x)[1]
    each = jax.vmap(lambda x: jax.pure_callback(refuse, shape, x, vmap_method="sequential"))
    for f in (pure, ordered, watched, each):
        for g in (f, jax.jit(f)):
            one, two = (jnp.ones(2), jnp.array([1.0, 2.0])) if f is each else (1.0, 2.0)
            assert jnp.all(g(one) == one)
            try:
                jax.block_until_ready(g(two))
            except jax.errors.JaxRuntimeError as error:
                assert "Refused: too large" in str(error) and isinstance(error, RuntimeError), error
                assert type(error.__cause__) is Refused
            else:
                raise AssertionError(g)
            assert jnp.all(g(one) == one)

    class Holder:
        function = None

        def __init__(self):
            self.function = refuse

        def __call__(self, x):
            return 2 * x

    assert jax.pure_callback(Holder(), shape, 1.0) == 2
    print(jax.pure_callback.__name__, jax.pure_callback is jax.experimental.pure_callback)
    """
    assert run(text) == "pure_callback True"


def test_associated_legendre_functions(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.scipy.special import lpmn, lpmn_values, sph_harm_y
    z = np.array([-0.9, 0.2, 1.0], np.float32)
    wanted = [[sph_harm_y(n, m, np.arccos(z), 0.0).real for n in range(5)] for m in range(5)]
    np.testing.assert_allclose(jax.jit(lpmn_values, static_argnums=(0, 1, 3))(4, 4, z, True), wanted, atol=1e-5)
    s = np.sqrt(1 - z * z)
    values = [[1 + 0 * z, z, 1.5 * z * z - 0.5], [0 * z, -s, -3 * z * s], [0 * z, 0 * z, 3 * s * s]]
    np.testing.assert_allclose(lpmn(2, 2, z)[0], values, atol=1e-6)
    slopes = [3 * z, 3 * (z * z - s * s) / np.maximum(s, 0.1), -6 * z]
    np.testing.assert_allclose(lpmn(2, 2, z[:2])[1][:, 2], np.stack(slopes)[:, :2], rtol=1e-5)
    assert lpmn_values(0, 0, z, False).tolist() == [[[1, 1, 1]]]
    assert np.isfinite(lpmn_values(40, 40, z, False)[0]).all()  # of high orders they overflow
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


def test_options_act(run):
    text = """
    import jax, jax.numpy as jnp
    assert jax.config.x64_enabled is False
    jax.config.update("jax_check_static_indices", True)
    try:
        jnp.arange(3)[5]
    except IndexError:
        print("outside")
    jax.config.update("jax_check_static_indices", False)
    key = jax.random.key(0)
    with jax.debug_key_reuse(True):
        jax.random.normal(key)
        try:
            jax.random.normal(key)
        except jax.errors.KeyReuseError:
            print("used")
    jax.random.normal(key), jax.random.normal(key)
    """
    assert run(text).split() == ["outside", "used"]


def test_functions_take_jax_s_parameters(run):
    text = """
    import glob, tempfile
    import jax, jax.numpy as jnp
    from jax.ad_checkpoint import Recompute, Saveable
    x = jnp.ones(1)
    policy = lambda primitive, *avals, **params: Saveable if primitive.name == "cos" else Recompute
    assert jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.cos(x)), policy=policy))(0.0) == 0
    assert abs(jax.lax.igamma(a=1.0, x=2.0) - 0.864665) < 1e-5 and jax.lax.nextafter(x1=1.0, x2=2.0) > 1
    assert jnp.issubdtype(arg1=jnp.int32, arg2=jnp.integer) and jax.scipy.special.rel_entr(p=0.5, q=0.5) == 0
    for call in (lambda: jax.ffi.register_ffi_target("old", None, api_version=2),
                 lambda: jax.ffi.ffi_call("old", x, custom_call_api_version=1)):
        try:
            call()
        except NotImplementedError as e:
            assert "older interface" in str(e) or "api_version=2, which is not known" in str(e)
        else:
            raise AssertionError("another interface is taken")
    assert jax.lax.exp(0.0, accuracy=jax.lax.Tolerance(rtol=1e-3)) == 1
    assert jax.dtypes.result_type(1.0, return_weak_type_flag=True) == (jnp.float32, True)
    assert jax.dtypes.result_type(1.0, jnp.ones(1, "bfloat16"), return_weak_type_flag=True) == (jnp.bfloat16, False)
    assert jnp.nancumsum(jnp.ones(2, "uint8")).dtype == jnp.cumulative_prod(jnp.ones(2, "uint8")).dtype == jnp.uint8
    assert jnp.histogram(jnp.arange(5))[0].dtype == jnp.float32
    assert jnp.ones(1).dtype.type in {jnp.float32} and jax.typing.ArrayLike | "Later" | None
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(log_dir=folder):
            jnp.sin(jnp.ones(1000)).block_until_ready()
        (path,) = glob.glob(folder + "/**/*.xplane.pb", recursive=True)
        assert any(plane.name == "/host:CPU" for plane in jax.profiler.ProfileData.from_file(path).planes)
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


def test_scalars_of_numpy_are_strong_inside_of_jit_as_well(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    half = jnp.ones(2, "bfloat16")
    f, i = np.float32(1.5), np.int32(2)
    cases = [lambda: jnp.exp(f), lambda: jnp.abs(f), lambda: jnp.sum(f), lambda: jax.nn.gelu(f),
             lambda: jnp.add(f, 1.0), lambda: jnp.hypot(f, jnp.asarray(1.0)), lambda: jnp.where(True, f, f),
             lambda: jnp.ldexp(f, i)]
    for case in cases:
        for way in (lambda g: g, jax.jit):
            out = way(case)()
            assert out.dtype == jnp.float32 and not out.weak_type, case
            assert way(lambda x: case() * x)(half).dtype == jnp.float32
    for way in (lambda g: g, jax.jit):
        assert way(jnp.unwrap)(half).dtype == jnp.bfloat16
    """
    run(text)


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


def test_functions_of_integers_compute_in_floats_as_in_jax(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    x, y = jnp.arange(1, 4), jnp.array([1, 2])
    for made in (
        jnp.convolve(x, y), jnp.correlate(x, y), jnp.polymul(x, y), jnp.polyder(x), jax.scipy.signal.convolve(x, y),
        jax.scipy.signal.correlate2d(x[None], y[None]),
    ):
        assert made.dtype == jnp.float32
    assert jnp.promote_types("uint8", int) == "uint8" and jnp.promote_types("float16", float) == "float16"
    assert jnp.promote_types(int, "bool") == "int32" and jnp.promote_types("int8", "uint8") == "int16"
    assert jnp.bincount(jnp.array([-1, -1, 1, 3, 10]), length=5).tolist() == [2, 1, 0, 1, 0]
    assert jnp.isscalar(np.array(1.0)) and not jnp.isscalar(np.ones(1))
    """
    run(text)


def test_indices_of_a_traced_start(run):
    text = """
    import jax, jax.numpy as jnp
    x = jnp.arange(10)
    assert x[jax.ds(4, 2)].tolist() == jax.jit(lambda x, i: x[jax.ds(i, 2)])(x, 4).tolist() == [4, 5]
    assert jax.jit(lambda x, i: x.at[jax.ds(i, 2)].set(0))(x, 4).tolist() == [0, 1, 2, 3, 0, 0, 6, 7, 8, 9]
    """
    run(text)


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


def test_debug_checks_are_for_checkify_alone(run):
    text = """
    import jax
    from jax.experimental import checkify
    def f(x):
        checkify.debug_check(x != 0, "zero")
        return x
    assert f(0) == jax.jit(f)(0) == 0
    assert "zero" in checkify.checkify(f)(0)[0].get()
    assert jax.export.export(jax.numpy.sin)(jax.ShapeDtypeStruct((2,), "float32")).fun_name == "sin"
    """
    run(text)


def test_tangents_of_numbers_are_weak(run):
    text = """
    import jax, jax.numpy as jnp
    for f in (lambda x: 3 * jnp.sin(x), lambda x: 1.0):
        assert all(y.weak_type for y in map(jnp.asarray, jax.jvp(f, (2.0,), (3.0,))))
    assert not jax.jvp(jnp.sin, (jnp.float32(2),), (jnp.float32(3),))[1].weak_type
    """
    run(text)


def test_results_are_split_as_out_sharding_says(run):
    text = """
    import jax, jax.numpy as jnp
    from jax.sharding import PartitionSpec as P
    assert jax.random.normal(jax.random.key(0), (8, 4), out_sharding=P("x")).shape == (8, 4)  # there is no mesh
    jax.set_mesh(jax.make_mesh((4, 2), ("x", "y")))
    make = lambda key: jax.random.normal(key, (8, 4), out_sharding=P("x", "y"))
    for f in (make, jax.jit(make)):
        x = f(jax.random.key(0))
        assert x.sharding.spec == P("x", "y") and x.addressable_shards[0].data.shape == (2, 2)
    assert jnp.dot(x, jnp.ones((4, 4)), out_sharding=P("x", None)).addressable_shards[0].data.shape == (2, 4)
    """
    run(text, FT_CPU_DEVICES="8")


def test_trees_whose_nodes_take_arrays_alone(run):
    text = """
    import jax, jax.numpy as jnp
    class Node:
        def __init__(self, a):
            self.a = jnp.asarray(a)
    jax.tree_util.register_pytree_node(Node, lambda n: ((n.a,), None), lambda _, parts: Node(*parts))
    node = Node(jnp.arange(5.0))
    assert jax.vmap(lambda x: x)(node).a.tolist() == jax.jit(jax.vmap(lambda x: x, 0, 0))(node).a.tolist()
    assert jax.ShapeDtypeStruct.like(node.a) == jax.ShapeDtypeStruct((5,), "float32")
    """
    run(text)


def test_traced_programs_in_jax_s_form(run):
    text = """
    import jax, jax.numpy as jnp
    program = jax.jit(lambda x: jnp.sin(x) * 2).trace(1.0).jaxpr
    assert [e.primitive.name for e in program.eqns] == [e.primitive.name for e in program.jaxpr.eqns] == ["sin", "mul"]
    assert program.jaxpr.outvars[0] is program.eqns[1].outvars[0]
    from jax._src.util import safe_map
    assert safe_map(lambda x, y: x + y, [1], [2]) == [3]
    """
    run(text)


def test_traced_values_are_array_like(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.typing import ArrayLike
    def f(x):
        assert isinstance(x, ArrayLike) and isinstance(x, jax.Array)
        return 2.0 * x
    for call in (jax.grad(f), jax.jit(f), lambda x: jax.vmap(f)(x[None]), f):
        call(jnp.float32(1))
    assert all(isinstance(x, ArrayLike) for x in (1, 1.0, True, 1j, np.ones(2), np.float32(1)))
    assert not isinstance([1], ArrayLike) and not isinstance("x", ArrayLike)
    assert (ArrayLike | None) and (ArrayLike | "MyType")
    """
    run(text)


def test_reshaped_arrays_of_numpy_can_be_read_under_jit(run):
    text = """
    import warnings
    import jax, jax.numpy as jnp, numpy as np
    values = np.arange(6.0).reshape(2, 3)
    @jax.jit
    def f(x):
        rows = jnp.reshape(values > 2, (3, -1)).all(-1)
        assert isinstance(rows, np.ndarray) and not rows[0] and rows[2]
        return jnp.reshape(x, (3, 2)) + jnp.reshape(values, (3, 2))
    got = f(values)
    assert isinstance(got, jax.Array) and got.dtype == jnp.float32
    np.testing.assert_allclose(got, 2 * values.reshape(3, 2))
    np.testing.assert_array_equal(jnp.reshape(values, 6, order="F"), values.ravel(order="F"))
    try:
        jnp.reshape(values, (5,))
    except ValueError as error:
        assert "6 elements" in str(error)
    else:
        raise AssertionError("six elements fit no five")
    """
    run(text)
