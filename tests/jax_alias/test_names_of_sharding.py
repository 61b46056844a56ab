"""Names of `jax` and `jax.sharding` about devices, threads and memory."""


def test_axes_and_memory(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import AbstractDevice, AbstractMesh, AxisType, ManualAxisType, PartitionSpec as P
    from jax.sharding import auto_axes, explicit_axes
    jax.config.update("jax_num_cpu_devices", 4)
    x = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    with jax.set_mesh(jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)):
        y = auto_axes(lambda x: x * 2, out_sharding=P("x", "y"))(x)
        assert y.sharding.spec == P("x", "y") and (y == x * 2).all()
        assert explicit_axes(lambda x: x, in_sharding=P("x"))(x).sharding.spec == P("x")
        total = jax.smap(lambda x: jax.lax.psum(x, "x"), in_axes=0, out_axes=None, axis_name="x")(x)
        np.testing.assert_array_equal(total, x[:2] + x[2:])
    assert jax.device_put(x, jax.memory.Space.Host).sharding.memory_kind == "pinned_host"
    assert jax.host_ids() == [0]
    device = AbstractDevice("TPU v5", 2, "tpu")
    assert AbstractMesh((2,), ("x",), abstract_device=device).size == 2 and device.num_cores == 2
    assert ManualAxisType(varying={"x"}).varying == {"x"} and jax.typeof(x).manual_axis_type == ManualAxisType()
    try:
        ManualAxisType(varying={"x"}, reduced={"x"})
    except ValueError as error:
        assert "'x'" in str(error)
    context = jax.make_user_context(default_value=1)
    with context(2):
        assert context.value == 2
    with jax.auto_pcast(False):
        assert not jax.config.jax_auto_pcast
    print("ok")
    """
    assert run(text) == "ok"


def test_arrays_that_the_garbage_collector_frees(run):
    text = """
    import gc, sys, jax, jax.numpy as jnp
    def cycle():
        a = [jnp.ones(3)]
        a.append(a)
    with jax.array_garbage_collection_guard("log"):
        assert jax.config.jax_array_garbage_collection_guard == "log"
        cycle()
        gc.collect()
    assert jax.config.jax_array_garbage_collection_guard is None
    try:
        jax.config.update("jax_array_garbage_collection_guard", "never")
    except ValueError as error:
        print(error, file=sys.stderr)
    with jax.thread_guard(True):
        assert jax.config.jax_thread_guard and (jnp.ones(2) + 1).sum() == 4
    assert not jax.config.jax_thread_guard
    raise SystemExit(1)
    """
    errors = run(text, fails=True)
    assert "was deleted by the Python garbage collector" in errors and "'never' is no level" in errors
