"""Attributes and parameters of JAX's public classes and functions, where the package's own have other names."""


def test_stages_have_jax_s_attributes(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    table = jnp.arange(12.0).reshape(3, 4)
    def affine(params, x): return {"y": x @ table * params["k"]}
    args = ({"k": np.float32(2)}, np.ones((2, 3), np.float32))
    traced = jax.jit(affine, donate_argnums=1).trace(*args)
    assert traced.fun_name == "affine" and traced.donate_argnums == (1,), traced.donate_argnums
    assert traced.out_avals["y"].shape == (2, 4)
    lowered = traced.lower()
    compiled = lowered.compile()
    for stage in (lowered, compiled):
        (params, x), kwargs = stage.in_avals
        assert params["k"].shape == () and x.shape == (2, 3) and kwargs == {} and stage.donate_argnums == (1,)
    (params, x), _ = compiled.input_formats
    assert x.layout.major_to_minor == (0, 1) and params["k"].layout.major_to_minor == ()
    assert compiled.output_formats["y"].sharding.device_set == set(jax.devices())
    np.testing.assert_allclose(compiled(*args)["y"], np.ones((2, 3)) @ np.arange(12).reshape(3, 4) * 2)
    assert traced.args_info[0][1].donated and lowered.args_info[0][1]._aval.shape == (2, 3)
    """
    run(text)


def test_program_of_a_traced_function_has_its_constants(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    table = jnp.arange(12.0).reshape(3, 4)
    closed = jax.jit(lambda x: x @ table).trace(np.ones((2, 3), np.float32)).jaxpr
    assert len(closed.consts) == len(closed.constvars) == len(closed.jaxpr.constvars) == 1 and len(closed.invars) == 1
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (out,) = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)
    np.testing.assert_allclose(out, x @ np.arange(12).reshape(3, 4))
    dropped = closed.map_jaxpr(lambda jaxpr: jaxpr.replace(eqns=[]))
    assert closed.jaxpr.eqns and not dropped.jaxpr.eqns and not closed.is_high
    assert closed.pretty_print(use_color=False) == str(closed)
    """
    run(text)


def test_names_in_debug_info(run):
    text = """
    import jax, functools
    def f(a, *rest, c, **more): return {"u": a["k"] + rest[1] * c}, more["d"]
    info = jax.make_jaxpr(f)({"k": 1.0}, 2.0, 3.0, c=4.0, d=5.0).jaxpr.debug_info
    assert info.arg_names == ("a['k']", "rest[0]", "rest[1]", "c", "more['d']"), info.arg_names
    assert info.safe_result_paths(2) == ("result[0]['u']", "result[1]") and info.safe_result_paths(3) == ("",) * 3
    assert info.func_name == "f" and info.func_lineno == 3 and info.traced_for == "jit", info
    assert info.replace_func_name("g").func_name == "g" and info.with_unknown_names().safe_arg_names(2) == ("", "")
    def g(x, n, *, c=2.0): return x * n * c
    info = jax.make_jaxpr(g, static_argnums=1)(1.0, 2, c=3.0).jaxpr.debug_info
    assert info.arg_names == ("x", "c") and info.resolve_result_paths().result_paths == ("result",)
    assert jax.make_jaxpr(functools.partial(g, 1.0))(2.0).jaxpr.debug_info.arg_names == ("n",)
    """
    run(text)


def test_lowering_for_another_platform(run):
    text = """
    import jax, jax.numpy as jnp
    traced = jax.jit(lambda x: jnp.sin(x)).trace(1.0)
    here = jax.default_backend()
    elsewhere = {"cpu": "cuda"}.get(here, "cpu")
    assert "stablehlo.sine" in traced.lower(lowering_platforms=(elsewhere,)).as_text()
    for refused in (
        lambda: traced.lower(lowering_platforms=(elsewhere,)).compile(),
        lambda: traced.lower(lowering_platforms=("cpu", "cuda")),
        lambda: traced.lower(lowering_platforms=("tpu",)),
    ):
        try:
            refused()
        except NotImplementedError as error:
            print(type(error).__name__)
    """
    assert run(text).split() == ["UnsupportedError"] * 3


def test_specs_and_structs(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    P = jax.P
    spec = P("x", None)
    assert spec.partitions == ("x", None) and spec.reduced == spec.unreduced == frozenset()
    assert isinstance(spec + P("y"), P) and spec + ("y",) == P("x", None, "y") and ("y",) + spec == P("y", "x")
    assert spec.update(partitions=("y",)) == P("y") and spec.update() == spec
    struct = jax.ShapeDtypeStruct((2, 3), jnp.float32, vma=frozenset(), manual_axis_type=None)
    assert len(struct) == 2 and not struct.is_ref and struct.format.sharding is None
    x = jnp.ones((2, 3))
    assert jax.ShapeDtypeStruct((2, 3), jnp.float32, sharding=x.format).sharding == x.sharding
    aval = jax.typeof(x)
    assert aval.str_short() == "float32[2,3]" and aval.str_short(short_dtypes=True) == "f32[2,3]"
    assert aval.update_weak_type(True).weak_type and aval.to_ct_aval() is aval and not aval.is_high
    assert jax.Array.__add__(x, x).shape == (2, 3) and not hasattr(jax.Array, "__jax_array__")
    assert jax.jit(lambda x: x.to_device(jax.devices()[0]) + 1)(x).shape == (2, 3)
    assert jax.local_devices(process_index=0) == jax.local_devices(host_id=0) == jax.local_devices()
    assert jax.local_devices(7) == []
    """
    run(text)


def test_keys_have_attributes_of_arrays(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    keys = jax.random.split(jax.random.key(3), 4)
    words = np.asarray(jax.random.key_data(keys))
    assert str(keys.aval) == "key<fry>[4]" and keys.copy_to_host_async() is None
    shards = [keys.addressable_data(0), keys.addressable_shards[0].data, keys.global_shards[0].data]
    for shard in [*shards, keys.to_device(jax.devices()[0])]:
        assert shard.dtype == keys.dtype and shard.shape == (4,)
        np.testing.assert_array_equal(jax.random.key_data(shard), words)
    assert len(keys.addressable_shards[0].index) == 1
    """
    run(text)


def test_exported_programs_have_jax_s_attributes(run):
    text = """
    import jax, jax.numpy as jnp
    from jax import export
    made = export.export(jax.jit(lambda x, y: (x + y, x, y)))(1.0, 2.0)
    assert made.nr_devices == 1 and made.ordered_effects == made.unordered_effects == made.disabled_safety_checks == ()
    assert made.module_kept_var_idx == (0, 1) and made.in_shardings_hlo == (None,) * 2
    assert made.out_shardings_hlo == (None,) * 3 and b"StableHLO" in made.mlir_module_serialized[:40]
    low, high = export.minimum_supported_calling_convention_version, export.maximum_supported_calling_convention_version
    assert low <= made.calling_convention_version <= high
    shapes = export.symbolic_args_specs((jnp.ones((2, 3)), jnp.ones(3)), ("b, 3", "3"))
    made = export.export(jax.jit(lambda x, y: x @ y))(*shapes)
    assert made.nr_devices == 1 and made.module_kept_var_idx == (0, 1) and made.in_shardings_hlo == (None,) * 2
    assert made.out_shardings_hlo == (None,) and made.in_shardings_jax(None) == (None,) * 2
    assert low <= made.calling_convention_version <= high and made.ordered_effects == ()
    """
    run(text)


def test_parameters_of_functions(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np, jax.image, jax.scipy.linalg, jax.scipy.stats as stats
    from jax import lax
    x = jnp.asarray([1 + 2.0**-7, 3], jnp.bfloat16)
    wide = lax.mul(x, x, out_dtype=jnp.float32)
    assert wide.dtype == "float32" and float(wide[0]) == (1 + 2.0**-7) ** 2
    assert lax.mul(x, x, out_dtype=jnp.int32).tolist() == [1, 9] and lax.mul(x, x).dtype == x.dtype
    whole = jnp.asarray([100], jnp.int8)
    assert int(lax.mul(whole, whole, out_dtype=jnp.int32)[0]) == 10000
    assert lax.mul(1.5, 1.5, out_dtype=jnp.int32) == 1  # operands are converted before the product
    rng = np.random.default_rng(0)
    a = rng.normal(size=(5, 3)).astype(np.float32)
    numbers = (((0,), (0,)), ((), ()))
    np.testing.assert_allclose(lax.dot(a, a, dimension_numbers=numbers), a.T @ a, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(lax.dot(a.T, a), a.T @ a, rtol=1e-5, atol=1e-5)
    product = jnp.linalg.multi_dot([a, a.T, a], precision="highest")
    np.testing.assert_allclose(product, a @ a.T @ a, rtol=1e-4, atol=1e-4)
    for left, right in ((a, a[:, :2] + 1), (a.T, a[:3]), (np.ones_like(a), a)):
        wanted = np.linalg.lstsq(left, right, rcond=None)[1]
        found = jnp.linalg.lstsq(left, right, numpy_resid=True)[1]
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    u, values, vh = np.linalg.svd(a, full_matrices=False)
    part = jnp.linalg.svd(a, full_matrices=False, subset_by_index=(1, 3))
    np.testing.assert_allclose((part.U * part.S) @ part.Vh, (u * values)[:, 1:] @ vh[1:], atol=1e-5)
    dc = lax.linalg.svd(a, compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.DIVIDE_AND_CONQUER)
    np.testing.assert_allclose(dc, values, rtol=1e-5)
    np.testing.assert_allclose(stats.logistic.isf(x=0.3), -np.log(0.3 / 0.7), rtol=1e-5)
    np.testing.assert_allclose(stats.gumbel_l.ppf(p=0.5), np.log(np.log(2)), rtol=1e-5)
    assert jax.vmap(jnp.sin, sum_match=False)(a).shape == (5, 3) and jnp.isneginf(-jnp.inf, out=None)
    jax.debug.callback(lambda v: None, 1.0, partitioned=False)
    jax.debug.print("value {x}", x=7, partitioned=True, skip_format_check=True)
    jax.effects_barrier()
    assert jax.image.ResizeMethod.from_string("area") is jax.image.ResizeMethod.AREA
    square = a.T @ a
    assert jax.scipy.linalg.eigh(square, eigvals=None)[0].shape == (3,)
    for refused in (
        lambda: jax.scipy.linalg.eigh(square, eigvals=(0, 1)),
        lambda: jax.scipy.linalg.funm(square, jnp.exp, disp=False),
        lambda: jax.vmap(jnp.sin, sum_match=True),
    ):
        try:
            refused()
        except ValueError as error:
            print(type(error).__name__)
    """
    assert run(text).split() == ["value", "7", *["ArgumentError"] * 3]


def test_residual_of_attention_is_the_logsumexp_of_its_logits(run):
    text = """
    import jax, numpy as np
    rng = np.random.default_rng(0)
    q, k = (rng.normal(size=s).astype(np.float32) for s in ((2, 5, 4, 8), (2, 6, 2, 8)))
    bias, mask = rng.normal(size=(2, 4, 5, 6)).astype(np.float32), rng.random((2, 1, 5, 6)) < 0.8
    mask[..., 0] = True
    products = np.einsum("btnh,bsnh->bnts", q.astype(float), np.repeat(k, 2, axis=2).astype(float))
    causal = np.tri(5, 6, dtype=bool)
    near = abs(np.arange(5)[:, None] - np.arange(6)) <= 1
    short = np.arange(6) < np.array([3, 6])[:, None, None, None]
    cases = {
        "plain": ({}, products / 8**0.5, True),
        "causal": ({"is_causal": True}, products / 8**0.5, causal),
        "scale": ({"scale": 0.3}, products * 0.3, True),
        "window": ({"local_window_size": 1}, products / 8**0.5, near),
        "bias": ({"bias": bias}, products / 8**0.5 + bias, True),
        "mask": ({"mask": mask, "is_causal": True}, products / 8**0.5, mask & causal),
        "lengths": ({"key_value_seq_lengths": np.array([3, 6], np.int32)}, products / 8**0.5, short),
    }
    for name, (options, logits, attended) in cases.items():
        out, residual = jax.nn.dot_product_attention(q, k, k, return_residual=True, **options)
        assert out.shape == q.shape and residual.dtype == "float32"
        wanted = np.log(np.where(attended, np.exp(logits), 0).sum(-1)).transpose(0, 2, 1)
        np.testing.assert_allclose(residual, wanted, rtol=2e-5, atol=2e-5, err_msg=name)
    single = jax.nn.dot_product_attention(q[0], k[0], k[0], return_residual=True)[1]
    assert single.shape == (5, 4)
    assert jax.nn.dot_product_attention(q, k, k).shape == q.shape
    """
    run(text)


def test_primitives_that_are_composed_here(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax import lax
    from jax.extend.core import primitives
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    squeezed = jax.vmap(lambda x: lax.squeeze_p.bind(x, dimensions=(0,)))(x[:, None])
    np.testing.assert_array_equal(squeezed, x)
    np.testing.assert_array_equal(lax.stack_p.bind(x, x + 1, axis=1), np.stack([x, x + 1], 1))
    np.testing.assert_array_equal(jax.grad(lambda x: lax.stack_p.bind(x, 2 * x, axis=0).sum())(x), np.full((2, 3), 3.0))
    np.testing.assert_array_equal(np.stack(lax.unstack_p.bind(x, axis=1), 1), x)
    assert lax.squeeze_p.abstract_eval(jax.typeof(x[:1]), dimensions=(0,))[0].shape == (3,)
    assert lax.squeeze_p is primitives.squeeze_p and lax.unstack_p.multiple_results and lax.stage(1.0).shape == ()
    values, places = lax.approx_top_k_p.bind(x, k=2, is_max_k=True)
    (moved,) = lax.device_put_p.bind(x, devices=(None,))
    assert values.tolist() == [[2, 1], [5, 4]] and places.tolist() == [[2, 1]] * 2 and moved is x
    key = jax.random.key(3)
    same = lambda one, other: np.testing.assert_array_equal(*map(jax.random.key_data, (one, other)))
    same(primitives.random_split_p.bind(key, shape=(2,)), jax.random.split(key))
    same(primitives.random_fold_in_p.bind(key, np.uint32(7)), jax.random.fold_in(key, 7))
    keys = jax.random.split(key, 3)
    bits = primitives.random_bits_p.bind(keys, bit_width=16, shape=(2,))
    np.testing.assert_array_equal(bits, [jax.random.bits(k, (2,), "uint16") for k in keys])
    token, out = jax.jit(lambda token, x: (lax.after_all(token, lax.create_token()), 2 * x))(lax.create_token(), 1.0)
    assert isinstance(token, jax.extend.core.Token) and float(out) == 2 and lax.dce_sink(x) is None
    keeping = lambda: lax.dce_sink(x, prevent_mlir_dce=True)
    for refused in (lambda: lax.after_all(x), keeping, lambda: lax.get_p.bind(x)):
        try:
            refused()
        except Exception as error:
            print(type(error).__name__)
    """
    assert run(text).split() == ["ArgumentError", "UnsupportedError", "UnsupportedError"]


def test_unused_parts_of_programs(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    from jax.extend.core import Effect
    from jax.interpreters import mlir, partial_eval
    t, u = jnp.arange(3.0), 2 * jnp.arange(3.0)
    def f(x, y):
        jax.debug.callback(lambda v: None, y + 1)
        return x + t, jnp.sin(x) * u, x - 1
    closed = jax.make_jaxpr(f)(t, t)
    x, y = np.ones(3, np.float32), np.full(3, 2, np.float32)
    cases = [
        ([True, False, False], [True, False], [x + np.arange(3)]),
        ([False, True, False], [False, True], [np.sin(x) * 2 * np.arange(3)]),
        ([False, False, True], [False, False], [x - 1]),
        (False, [False, False], []),
    ]
    for used, wanted_consts, wanted in cases:
        part, consts, args = partial_eval.dce_jaxpr_consts(closed.jaxpr, used)
        assert consts == wanted_consts and args == [used is not False, True], (consts, args)  # the callback needs y
        assert len(part.eqns) < len(closed.jaxpr.eqns)
        values = [c for c, kept in zip(closed.consts, consts) if kept], [v for v, kept in zip((x, y), args) if kept]
        found = jax.core.eval_jaxpr(part, values[0], *values[1])
        assert len(found) == len(wanted)
        for out, expected in zip(found, wanted):
            np.testing.assert_allclose(out, expected, rtol=1e-6)
        _, consts, args = partial_eval.dce_jaxpr_consts(closed.jaxpr, used, instantiate=True)
        assert consts == args == [True, True]
        part, args = partial_eval.dce_jaxpr(closed.jaxpr, used, instantiate=[True, False])
        assert args == [True, True] and len(part.constvars) == 2
    class Printing(Effect): pass
    mlir.lowerable_effects.add_type(Printing)
    assert mlir.lowerable_effects.contains(Printing()) and not mlir.lowerable_effects.contains(Effect())
    """
    run(text)


def test_values_of_mapped_tracers(run):
    text = """
    import jax, jax.numpy as jnp
    seen = []
    jax.vmap(lambda x: seen.append((x.val.tolist(), x.batch_dim)), in_axes=1)(jnp.arange(6.0).reshape(2, 3))
    print(seen)
    """
    assert run(text) == "[([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], 1)]"
