"""Modules of `jax.experimental` under the alias; their own tests are elsewhere."""


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
