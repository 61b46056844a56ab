"""Layouts, and modules of `jax.experimental` that annotate programs."""


def test_layouts(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.experimental.layout import Format, Layout, with_layout_constraint
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    f = jax.jit(lambda x: with_layout_constraint({"a": x.T * 2}, Layout((1, 0)))["a"])
    assert "@LayoutConstraint" in f.lower(x).as_text()
    np.testing.assert_array_equal(f(x), x.T * 2)
    np.testing.assert_array_equal(jax.vmap(f)(np.stack([x, x]))[1], x.T * 2)
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: (x * f(x).T).sum()))(x), 4 * x)
    np.testing.assert_array_equal(with_layout_constraint(x, Layout((1, 0))), x)
    y = jnp.asarray(x)
    assert y.format == Format(Layout((0, 1), ()), y.sharding)
    np.testing.assert_array_equal(jax.device_put(x, y.format), x)
    np.testing.assert_array_equal(jax.jit(lambda x: x + 1, in_shardings=y.format, out_shardings=y.format)(x), x + 1)
    for wrong in (Layout((0,)), y.format):
        try:
            with_layout_constraint(x, wrong)
        except ValueError as error:
            print(type(error).__name__)
    """
    assert run(text).split() == ["ShapeError", "ArgumentError"]


def test_annotations(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.experimental.compute_on import compute_on, compute_on2
    from jax.experimental.control_deps import control_dep, schedule
    from jax.experimental.scheduling_groups import scheduling_group, xla_metadata_call
    from jax.experimental.shard_alike import shard_alike
    from jax.experimental.xla_metadata import set_xla_metadata
    x = np.arange(3.0, dtype=np.float32)
    @jax.jit
    def f(x):
        with set_xla_metadata(a="1"), compute_on("device_host"):
            y = scheduling_group("g")(jnp.sin)(x)
        y, z = shard_alike(y, y + 1)
        control_dep(y, z)
        return compute_on2(jnp.add, compute_type="device", out_memory_spaces=jax.memory.Space.Host)(y, z)
    np.testing.assert_allclose(f(x), 2 * np.sin(x) + 1, rtol=1e-6)
    text = f.lower(x).as_text()
    print(all(part in text for part in ('a = "1"', 'scheduling_group = "g"', '"host"', '"dense"', "@control_dep")))
    """
    assert run(text) == "True"


def test_a_missing_name_that_resembles_another_is_inert_at_import(run, library):
    text = """
    from jax.experimental.sparse import coo_todens
    from jax.numpy import summ
    from jax import tree_mapp
    """
    paths = [library(text)]
    run("import library; assert 'missing' in repr(library.summ)", paths=paths)
    error = run("import library; library.summ(1)", paths=paths, fails=True)
    assert "functorch_like has no jax.numpy.summ" in error
    assert "ImportError: functorch_like has no jax.numpy.summ" in run("from jax.numpy import summ", fails=True)


def test_classes_of_arrays_and_tracers_are_in_modules_of_jax(run):
    text = """
    import pickle
    import jax, jax.numpy as jnp
    seen = []
    f = lambda x: seen.append(x) or x.sum()
    x = jnp.arange(3.0)
    f(x), jax.jit(f)(x), jax.grad(f)(x), jax.vmap(f)(x[None]), jax.linearize(f, x)
    jax.eval_shape(f, x)
    assert {type(v).__module__.partition(".")[0] for v in seen} == {"jax", "jaxlib"}, seen
    assert pickle.loads(pickle.dumps(x)).tolist() == [0, 1, 2]
    """
    run(text)
