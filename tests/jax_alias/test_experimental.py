"""Modules of `jax.experimental` under the alias; their own tests are elsewhere."""

import pytest


def test_programs_and_generators(run):
    text = """
    import jax, numpy as np
    from jax.experimental import random, rnn, serialize_executable, topologies
    jax.config.update("jax_num_cpu_devices", 4)
    f = jax.jit(lambda x: {"y": x + 1}).lower(np.float32(1)).compile()
    assert serialize_executable.deserialize_and_load(*serialize_executable.serialize(f))(np.float32(2))["y"] == 3
    mesh = topologies.make_mesh(topologies.get_attached_topology(), (2, 2), ("x", "y"))
    assert mesh.shape == {"x": 2, "y": 2}
    rng = random.stateful_rng(7)
    assert jax.dtypes.issubdtype(rng.key().dtype, jax.dtypes.prng_key)
    np.testing.assert_array_equal(jax.random.key_data(rng.key()), [195045567, 4062205631])
    drawn = jax.vmap(lambda rng: rng.normal())(rng.split(3))
    assert drawn.shape == (3,) and len(set(drawn.tolist())) == 3
    weights = rnn.init_lstm_weight(jax.random.key(0), 3, 4, 1, False)
    state = np.zeros((1, 2, 4), np.float32)
    y, *_ = rnn.lstm(np.ones((2, 5, 3)), state, state, weights, np.array([5, 3]), 3, 4, 1, 0.0, False)
    assert y.shape == (2, 5, 4)
    print("ok")
    """
    assert run(text) == "ok"


def test_partitioned_functions_and_buffers(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.experimental.buffer_callback import buffer_callback
    from jax.experimental.custom_partitioning import BATCHING, ArrayMapping, SdyShardingRule, custom_partitioning
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    import jax.experimental.key_reuse
    jax.config.update("jax_num_cpu_devices", 4)
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    seen = []
    def partition(mesh, arg_shapes, result_shape):
        split = jax.tree.map(lambda x: x.sharding, arg_shapes)
        return mesh, lambda x: seen.append(x.shape) or jnp.fft.fft(x), split[0], split
    fft = custom_partitioning(jnp.fft.fft)
    rule = SdyShardingRule((ArrayMapping(BATCHING, "i"),), (ArrayMapping(BATCHING, "i"),))
    fft.def_partition(partition=partition, sharding_rule=rule, infer_sharding_from_operands=lambda *a: None)
    x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.complex64)
    y = jax.jit(fft)(jax.device_put(x, NamedSharding(mesh, P("x"))))
    np.testing.assert_allclose(y, np.fft.fft(x), atol=1e-4)
    assert seen == [(2, 16)] and y.sharding.spec == P("x")
    write = lambda ctx, out, x: np.copyto(np.asarray(out), np.asarray(x) + 1)
    add_one = buffer_callback(write, jax.ShapeDtypeStruct((), "float32"))
    assert jax.jit(add_one)(np.float32(2)) == 3
    print("ok")
    """
    assert run(text) == "ok"


def test_effects_and_warnings(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.debug import DebugEffect, OrderedDebugEffect
    kinds = lambda f: sorted(type(e).__name__ for e in jax.make_jaxpr(f)(1.0).effects)
    assert kinds(lambda x: jax.debug.print("{}", x)) == ["DebugEffect"]
    assert kinds(jax.jit(lambda x: jax.debug.print("{}", x, ordered=True))) == ["OrderedDebugEffect"]
    assert kinds(jnp.sin) == [] and str(DebugEffect()) == "Debug" and issubclass(DebugEffect, jax.core.Effect)
    assert issubclass(jnp.ComplexWarning, np.exceptions.ComplexWarning)
    try:
        jax.profiler.register_subprocess(1, 1)
    except ValueError as error:
        print("start_server" in str(error))
    """
    assert run(text) == "True"


def test_arrays_of_several_devices_in_files(run, tmp_path):
    pytest.importorskip("tensorstore")
    told = run(
        """
    import sys
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    from jax.experimental.array_serialization import serialization as files

    jax.config.update("jax_num_cpu_devices", 4)
    mesh, folder = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b")), sys.argv[1]
    values = np.arange(24).reshape(4, 6)
    for database in (False, True):
        for n, dtype in enumerate(("float32", "bfloat16", "int8", "bool", "complex64")):
            x = jax.device_put(jnp.asarray(values, dtype), NamedSharding(mesh, P("a", "b")))
            place = files.get_tensorstore_spec(f"{folder}/{n}_{database}", ocdbt=database)
            files.run_serialization([x], [place])
            for spec in (P("b"), P(), P(None, "a")):
                y, = files.run_deserialization([NamedSharding(mesh, spec)], [place])
                assert y.dtype == x.dtype and y.sharding.spec == spec
                np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
        y, = files.run_deserialization([NamedSharding(mesh, P("a"))], [
            files.get_tensorstore_spec(f"{folder}/0_{database}", ocdbt=database)], [(6, 3)], ["float16"])
        np.testing.assert_array_equal(np.asarray(y)[:4], values[:, :3])
        assert y.shape == (6, 3) and not np.asarray(y)[4:].any()

    manager, done = files.GlobalAsyncCheckpointManager(), []
    arrays, paths = [x, jnp.float32(3), jnp.zeros((0, 3))], [f"{folder}/many{i}" for i in range(3)]
    manager.serialize_with_paths(arrays, paths, on_commit_callback=lambda: done.append(True))
    whole = NamedSharding(mesh, P())
    for a, b in zip(arrays, manager.deserialize_with_paths([whole] * 3, paths), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    manager.serialize_with_paths([x], [f"{folder}/last"], on_commit_callback=lambda: done.append(1 / 0))
    try:
        manager.wait_until_finished()
    except ZeroDivisionError as error:
        print(done, error)
    manager.check_for_errors()
    try:
        files.get_tensorstore_spec("a/b", ocdbt=True)
    except ValueError as error:
        print(error)
        """,
        str(tmp_path),
    )
    assert told.splitlines()[0] == "[True] division by zero"
    assert "'a/b', which is relative" in told


def test_managers_of_checkpoints_have_an_interface(run):
    """orbax asks whether a checkpointer is such a manager."""
    text = """
    from jax.experimental.array_serialization import serialization
    base = serialization.GlobalAsyncCheckpointManagerBase
    names = ("check_for_errors", "wait_until_finished", "serialize", "deserialize")
    whole = type("Whole", (base,), {name: lambda self, *args, **kw: (args, kw) for name in names})
    assert isinstance(whole(), base) and not isinstance(object(), base)
    assert whole().serialize([1], [{}], on_commit_callback=print) == (([1], [{}]), {"on_commit_callback": print})
    for name in names:
        try:
            type("Part", (whole,), {name: base.__dict__[name]})()
        except TypeError as error:
            print(name in str(error))
    assert isinstance(serialization.GlobalAsyncCheckpointManager(), base)
    """
    assert run(text).split() == ["True"] * 4
