"""Parameters of JAX's functions that have no effect here or another name; functions that libraries replace."""

import importlib
import inspect

from functorch_like.jax_alias import options


def test_parameters_without_effect_and_under_jax_s_names(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    key, x = jax.random.key(0), np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
    same = np.testing.assert_array_equal
    for draw in (jax.random.normal, jax.random.uniform, jax.random.gumbel):
        same(draw(key, (3,), out_sharding=None), draw(key, (3,)))
    same(jax.random.bernoulli(key, 0.5, (3,), mode="low"), jax.random.bernoulli(key, 0.5, (3,)))
    assert 0 <= jax.random.triangular(key, 0.0, mode=1.0, right=2.0) <= 2
    image, window = x[None, :, :, None], np.ones((1, 1, 1, 1), np.float32)
    dims = ("NHWC", "HWIO", "NHWC")
    same(jax.lax.conv_general_dilated(image, window, (1, 1), "SAME", dimension_numbers=dims, out_sharding=None), image)
    same(jnp.zeros((2,), device=None, out_sharding=None), [0, 0])
    np.testing.assert_allclose(jax.lax.exp(x, accuracy=None), np.exp(x), rtol=1e-6)
    factor = jax.scipy.linalg.cholesky(x, lower=True, overwrite_a=True, check_finite=False)
    np.testing.assert_allclose(factor, np.linalg.cholesky(x), rtol=1e-6)
    same(jax.pmap(lambda v: 2 * v, backend="cpu")(x[:1]), 2 * x[:1])
    same(jax.lax.top_k(x, 1, is_stable=False)[0], [[4], [3]])
    same(jax.scipy.linalg.polar(x, method="qdwh", eps=1e-6)[0].round(3), np.eye(2))
    assert jax.grad(lambda v: v * v, reduce_axes=())(3.0) == jax.vjp(lambda v: 6 * v, 1.0, reduce_axes=())[1](1.0)[0]
    assert jax.random.gamma(key, 2.0, method="any").shape == ()
    assert jax.tree.reduce(function=lambda a, b: a + b, tree=[1, 2, 3]) == 6
    from jax.experimental.pjit import pjit
    assert pjit(fun=lambda v, n: v * n, in_shardings=None)(3.0, 2.0) == 6
    assert pjit(lambda v, n: v * n, None, None, (1,), donate_argnums=())(3.0, 2) == 6
    with jax.debug_nans(new_val=True):
        assert jax.config.jax_debug_nans
    try:
        jnp.zeros((2,), no_such_option=1)
    except TypeError as error:
        print("no_such_option" in str(error))
    """
    assert run(text) == "True"


def test_functions_of_the_table_are_there(run):
    text = """
    import importlib
    import jax
    from functorch_like.jax_alias import options
    for module, names, _ in (*options.IGNORED, *options.RENAMED):
        for name in names.split():
            assert callable(getattr(importlib.import_module(module), name)), (module, name)
    """
    run(text)


def test_parameters_of_the_table_are_not_ours():
    for module, names, ignored in options.IGNORED:
        found = importlib.import_module(module.replace("jax", "functorch_like", 1))
        for name in names.split():
            taken = set(inspect.signature(getattr(found, name)).parameters) if hasattr(found, name) else set()
            assert not taken & set(ignored.split()), f"{module}.{name}"


def test_products_of_einsum_by_a_function_of_the_library(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax import lax
    seen = []
    def doubled(x, y, dimension_numbers, precision=None, preferred_element_type=None):
        seen.append(dimension_numbers)
        return 2 * lax.dot_general(x, y, dimension_numbers, precision, preferred_element_type)
    x, y = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.arange(12.0, dtype=np.float32).reshape(3, 4)
    f = lambda x, dot: jnp.einsum("ij,jk->ki", x, y, _dot_general=dot)
    np.testing.assert_allclose(f(x, doubled), 2 * (x @ y).T)
    np.testing.assert_allclose(jax.jit(lambda x: f(x, doubled))(x), 2 * (x @ y).T)
    np.testing.assert_allclose(f(x, lax.dot_general), (x @ y).T)
    print(seen[0])
    """
    assert run(text) == "(((0,), (1,)), ((), ()))"  # as in JAX, y comes first where the result is then in order


def test_constraints_on_meshes_without_devices(run):
    text = """
    import jax, jax.numpy as jnp
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
    jax.config.update("jax_num_cpu_devices", 2)
    where = NamedSharding(AbstractMesh((2,), ("d",)), P("d"))
    bound = jax.jit(lambda x: jax.lax.with_sharding_constraint(2 * x, where))
    with jax.set_mesh(jax.make_mesh((2,), ("d",))):
        placed = bound(jnp.arange(4.0))
        again = jax.device_put(jnp.arange(4.0), where)
    print(placed.tolist(), len(placed.addressable_shards), len(again.addressable_shards))
    """
    assert run(text) == "[0.0, 2.0, 4.0, 6.0] 2 2"


def test_arrays_are_made_where_they_are_asked_for(run):
    text = """
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P
    jax.config.update("jax_num_cpu_devices", 2)
    last, mesh = jax.devices()[1], jax.make_mesh((2,), ("d",))
    x, where = jnp.ones(4), NamedSharding(mesh, P("d"))
    for made in (
        jnp.zeros(3, device=last), jnp.asarray([1.0], device=last), jnp.arange(3, device=last), jnp.eye(2, device=last),
        jnp.zeros_like(x, device=last), jnp.full((2,), 1, device=last), jnp.astype(x, "int32", device=last),
    ):
        assert made.devices() == {last}, made.devices()
    assert jnp.zeros(4, device=where).sharding == jnp.ones(4, out_sharding=where).sharding == where
    with jax.set_mesh(mesh):
        assert jnp.arange(4, out_sharding=P("d")).sharding == where
    try:
        jnp.zeros(4, device=last, out_sharding=where)
    except ValueError as error:
        print(str(error).splitlines()[0])
    """
    assert run(text) == "zeros got device= and out_sharding="


def test_a_product_that_wraps_the_usual_one_is_another(run):
    text = """
    import functools
    import jax.numpy as jnp
    from jax import lax
    @functools.wraps(lax.dot_general)
    def doubled(*args, **kwargs):
        return 2 * lax.dot_general(*args, **kwargs)
    print(float(jnp.einsum("i,i->", jnp.ones(2), jnp.ones(2), _dot_general=doubled)))
    """
    assert run(text) == "4.0"


def test_functions_are_pickled_by_their_names(run):
    text = """
    import pickle
    import jax, jax.numpy as jnp
    for f in (
        jax.random.normal, jax.lax.exp, jax.lax.transpose, jax.nn.initializers.zeros, jax.scipy.linalg.cholesky,
        jax.ops.segment_sum, jnp.zeros, jnp.asarray, jnp.dot, jnp.reshape, jnp.where, jax.tree.reduce,
    ):
        assert pickle.loads(pickle.dumps(f)) is f, f
    """
    run(text)


def test_what_environments_and_named_tensors_use(run):
    """Private and unusual forms that flashbax, haliax, jaxmarl and mujoco-mjx depend on."""
    text = """
    import jax, jax.numpy as jnp, numpy as np, opt_einsum
    from jax import lax
    from jax._src.numpy import einsum as steps
    from jax.export import symbolic_shape

    bounds = jnp.array([2.0]), jnp.array([3.0])
    keys = jax.random.split(jax.random.key(0))
    drawn = jax.vmap(jax.random.uniform, (0, None, None, None, None))(keys, (), None, *bounds)
    assert drawn.shape == (2, 1) and 2 <= drawn.min() and drawn.max() < 3
    assert jax.random.uniform(jax.random.key(0)).shape == () == jax.random.uniform(jax.random.key(0), minval=2).shape

    x, y, z = np.ones((2, 3)), np.ones((3, 4)), np.ones(4)
    arrays, path = opt_einsum.contract_path("01,12,2->0", x, y, z, einsum_call=True)
    path = tuple((a, frozenset(b), c) for a, b, c, *_ in path)
    product = jax.jit(lambda *a: steps._einsum(a, path, None, None, lax.dot_general))(*arrays)
    np.testing.assert_allclose(product, x @ y @ z)
    assert jax.core.is_constant_dim(3) and not jax.core.is_constant_dim(symbolic_shape("b")[0])
    assert lax.select(jnp.int32(1), 3.0, 4.0) == 3 and lax.select(jnp.int32(0), 3.0, 4.0) == 4
    """
    run(text)


def test_a_module_that_registers_a_mapped_type_is_imported(run, tmp_path):
    (tmp_path / "registers.py").write_text(
        "from jax.interpreters import batching\nbatching.register_vmappable(int, int, int, None, None, None)\n"
    )
    assert run("import registers; print('imported')", paths=[tmp_path]) == "imported"


def test_positions_out_of_bounds_of_gather_are_clipped_and_of_scatter_dropped(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    x, places, lax = jnp.arange(1.0, 4.0), jnp.asarray([[5], [-1], [1]]), jax.lax
    roles = lax.GatherDimensionNumbers((), (0,), (0,))
    for options in ({}, {"mode": None}, {"fill_value": 7}):
        np.testing.assert_array_equal(lax.gather(x, places, roles, (1,), **options), [3, 1, 2])
    np.testing.assert_array_equal(lax.gather(x, places, roles, (1,), mode="fill", fill_value=7), [7, 7, 2])
    np.testing.assert_array_equal(lax.gather(x, places, roles, (1,), mode=lax.GatherScatterMode.FILL_OR_DROP)[2:], [2])
    updates = jnp.asarray([9.0, 8.0, 7.0])
    out = lax.scatter(x, places, updates, lax.ScatterDimensionNumbers((), (0,), (0,)))
    np.testing.assert_array_equal(out, [1, 7, 3])
    """
    run(text)


def test_universal_functions_take_out_and_where_as_none(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    x = jnp.arange(3.0)
    for name in "add bitwise_and logaddexp logical_or maximum multiply subtract".split():
        f, y = getattr(jnp, name), x.astype(int) if "bit" in name else x
        np.testing.assert_allclose(f(y, y, out=None, where=None), getattr(np, name)(np.asarray(y), np.asarray(y)))
        np.testing.assert_allclose(f.reduce(y), getattr(np, name).reduce(np.asarray(y)))
        assert isinstance(f, jnp.ufunc)
        for option in ("out", "where"):
            try:
                f(y, y, **{option: y})
            except ValueError as error:
                assert option in str(error)
            else:
                raise AssertionError(name)
    np.testing.assert_array_equal(jnp.negative(x, out=None), -x)
    np.testing.assert_array_equal(jax.lax.reduce(x, 0.0, jnp.add, (0,)), 3)
    """
    run(text)


def test_results_that_are_lists(run):
    text = """
    import jax, jax.numpy as jnp
    x, lax = jnp.arange(3.0), jax.lax
    values, places = lax.top_k(x, 2)
    assert values.tolist() == [2, 1] and places.tolist() == [2, 1]
    m = jnp.asarray([[2.0, 1.0], [1.0, 3.0]])
    found = lax.top_k(x, 1, axis=0), lax.approx_max_k(x, 2), lax.approx_min_k(x, 2)
    found += tuple(getattr(lax.linalg, name)(m) for name in ("hessenberg", "lu", "schur", "tridiagonal"))
    print(*(type(each).__name__ for each in found))
    print(lax.linalg.lu.__module__, lax.linalg.EighImplementation.QR.value)
    """
    first, second = run(text).splitlines()
    assert first.split() == ["list"] * 7 and second == "jax.lax.linalg qr"


def test_modes_of_map_coordinates_repeat_the_array_and_interpolate_to_cval(run):
    text = """
    import jax.numpy as jnp, numpy as np
    from jax.scipy.ndimage import map_coordinates
    from scipy import ndimage
    x, places = np.array([1.0, 3.0, 7.0], np.float32), [np.array([-1.0, -0.5, -0.2, 0, 1.5, 2, 2.2, 2.5, 3])]
    for mode, here in (("constant", "grid-constant"), ("wrap", "grid-wrap"), ("mirror", "mirror")):
        found = map_coordinates(x, places, 1, mode, 2.0)
        np.testing.assert_allclose(found, ndimage.map_coordinates(x, places, order=1, mode=here, cval=2.0), rtol=1e-5)
    np.testing.assert_allclose(map_coordinates(x, [jnp.asarray([-0.5])], order=1), [0.5])
    """
    run(text)


def test_mistakes_are_refused_at_once(run):
    text = """
    import jax
    for wrong in (lambda: jax.make_jaxpr(3), lambda: jax.ShapeDtypeStruct((2,), None)):
        try:
            wrong()
        except (TypeError, ValueError) as error:
            print(type(error).__name__)
    """
    assert len(run(text).split()) == 2
