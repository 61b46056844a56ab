"""Parts of JAX that libraries use besides functions: settings, meshes, sparse arrays, options, checks, trees."""

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


def test_the_function_behind_an_index_can_be_exchanged_by_its_code(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax._src.numpy.indexing import rewriting_take
    x, i = jnp.arange(1.0, 4.0), jnp.array([0, 9, -1])
    assert rewriting_take(x, i).tolist() == rewriting_take(x, i, fill_value=0).tolist() == [1, 3, 3]
    assert rewriting_take(x, i, mode="fill", fill_value=7).tolist() == [1, 7, 3]
    code = rewriting_take.__code__
    def other(x, index, **keywords):
        return x
    rewriting_take.__code__ = other.__code__
    assert x[0] is x and jax.jit(lambda x: x[i])(x).shape == (3,)
    rewriting_take.__code__ = code
    assert float(x[0]) == 1
    """
    run(text)


def test_private_names_that_libraries_read(run):
    text = """
    import importlib
    import jax
    from jax._src import random
    from jax._src.lib import xla_client
    assert random.PRNGKey is jax.random.PRNGKey and xla_client.XlaRuntimeError is jax.errors.JaxRuntimeError
    from jax._src.lax import linalg
    from jax._src.nn.functions import glu
    from jax._src.scipy.special import gammaln
    assert glu is jax.nn.glu and gammaln is jax.scipy.special.gammaln and linalg.qr_p is jax.lax.linalg.qr_p
    from functorch_like.jax_alias.missing import is_stand_in
    from functorch_like.jax_alias.names import PRIVATE
    for name in PRIVATE:
        module, _, attribute = name.rpartition(".")
        assert not is_stand_in(getattr(importlib.import_module(module), attribute)), name
    """
    run(text)


def test_dtypes_that_values_have_together(run):
    text = """
    import jax.numpy as jnp, numpy as np
    from jax._src.numpy.util import promote_dtypes, promote_dtypes_inexact
    for args, exact, inexact in (
        ((1, True), "int32", "float32"),
        ((jnp.ones(2, "int8"), 2), "int8", "float32"),
        ((jnp.ones(2, "bfloat16"), 1.5), "bfloat16", "bfloat16"),
        ((jnp.float16(1), jnp.ones((2, 3), "bfloat16")), "float32", "float32"),
        ((np.ones(2), 1j), "complex64", "complex64"),
    ):
        for fun, dtype in ((promote_dtypes, exact), (promote_dtypes_inexact, inexact)):
            made = fun(*args)
            assert [x.dtype for x in made] == [dtype] * 2, (args, fun)
            for x, given in zip(made, args):
                assert x.shape == np.shape(given) and np.array_equal(x, np.asarray(given, x.dtype))
    """
    run(text)
