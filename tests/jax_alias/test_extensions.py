"""Names of `jax.extend`, `jax.interpreters` and `jax.example_libraries` that few programs use."""


def test_bilinear_primitives_and_jvp_of_wrapped_functions(run):
    text = """
    import jax, jax.numpy as jnp, numpy as np
    import jax.extend.linear_util as lu
    from jax.extend.core import Primitive
    from jax.extend.core.primitives import add_jaxvals_p
    from jax.interpreters import ad, batching, mlir
    product = Primitive("product")
    product.def_impl(lambda x, y, *, scale: scale * (x @ y))
    product.def_abstract_eval(lambda x, y, *, scale: jax.core.ShapedArray((x.shape[0], y.shape[1]), x.dtype))
    mlir.register_lowering(product, mlir.lower_fun(product.impl, multiple_results=False))
    for_x = lambda ct, x, y, *, scale: product.bind(ct, y.T, scale=scale)
    for_y = lambda ct, x, y, *, scale: product.bind(x.T, ct, scale=scale)
    ad.defbilinear(product, for_x, for_y)
    a, b = (np.random.default_rng(0).normal(size=s).astype(np.float32) for s in ((2, 3), (3, 4)))
    f = lambda x, y: (product.bind(x, y, scale=2.0) ** 2).sum()
    ct = 8 * (a.astype(float) @ b)
    for way in (lambda f: f, jax.jit):
        x_bar, y_bar = way(jax.grad(f, (0, 1)))(a, b)
        np.testing.assert_allclose(x_bar, ct @ b.T, rtol=1e-4)
        np.testing.assert_allclose(y_bar, a.T @ ct, rtol=1e-4)
    square = lambda x: product.bind(x, x, scale=1.0)
    m, t = np.eye(2, dtype=np.float32) * 3, np.ones((2, 2), np.float32)
    np.testing.assert_allclose(jax.jvp(square, (m,), (t,))[1], m @ t + t @ m)

    (out,), (tangent,) = ad.jvp(lu.wrap_init(lambda x, y: [x * y])).call_wrapped((2.0, 3.0), (1.0, 10.0))
    zero = ad.Zero(jax.core.ShapedArray((), np.dtype("float32")))
    more = ad.jvp(lambda x, y: ([x * y], "aux"), (2.0, 3.0), (zero, 1.0), has_aux=True)
    print(out, tangent, more[1][0], more[2], add_jaxvals_p.bind(jnp.ones(2), jnp.ones(2)))
    assert ad.add_jaxvals_p is add_jaxvals_p
    """
    assert run(text) == "6.0 23.0 2.0 aux [2. 2.]"


def test_primitives_with_effects_are_applied(run):
    text = """
    import jax, numpy as np
    from jax.extend.core import Primitive
    from jax.interpreters import mlir
    seen = []
    def primitive(effects):
        made = Primitive("told")
        made.def_effectful_abstract_eval(lambda x: (x, effects))
        def rule(ctx, x):
            host = lambda x: (seen.append(float(x)), x)[1:]
            return mlir.emit_python_callback(
                ctx, host, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=bool(effects))[0]
        mlir.register_lowering(made, rule)
        return made
    for effects in ({"an effect"}, set()):
        told = primitive(effects)
        def f(x):
            told.bind(x)  # whose result is not used
            return x + 1
        assert jax.jit(f)(2.0) == 3
        assert jax.jit(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0])(3.0) == 6
        assert jax.jit(jax.grad(lambda x: f(jax.lax.stop_gradient(x)) * x))(1.0) == 2
        jax.effects_barrier()
        print(sorted(seen))
        seen.clear()
    """
    assert run(text).splitlines() == ["[1.0, 2.0, 3.0, 4.0, 5.0]", "[]"]


def test_stacks_of_names(run):
    text = """
    import jax
    from jax.extend import source_info_util as util
    empty = util.new_name_stack()
    names = empty.extend("a").transform("jvp").transform("vmap").extend("c").extend("d")
    assert str(names) == "a/jvp(vmap(c))/d" and str(empty.extend("a").transform("jvp")) == "a/jvp()"
    assert names[:1] + names[3:4] == empty.extend("a").extend("c") and len(names) == 5
    with jax.named_scope("outer"):
        with util.extend_name_stack("inner") as stack:
            assert stack == util.current_name_stack() == empty.extend("outer").extend("inner")
            assert util.current().name_stack == stack
            with util.reset_name_stack():
                assert util.current_name_stack() == empty
        with util.transform_name_stack("vmap"):
            assert str(util.current_name_stack()) == "outer/vmap()"

    @jax.named_scope("layer")
    def f(x):
        with util.extend_name_stack("product"):
            y = x * x
        with util.set_name_stack(util.current_name_stack().extend("sum")):
            return y + 1

    shown = [str(eqn.source_info.name_stack) for eqn in jax.make_jaxpr(f)(1.0).eqns]
    print(shown, "layer/product" in jax.jit(f).lower(1.0).as_text(debug_info=True), len(util.current_name_stack()))
    """
    assert run(text) == "['layer/product', 'layer/sum'] True 0"


# Other compile options: objects that hold options are what is tested.
def test_options_and_caches_of_backends(run):
    text = """
    import functools
    import jax, numpy as np
    from jax.extend import backend, lowering, sharding
    from jax.extend.ifrt_programs import ifrt_programs
    from jax.extend.mlir import ir
    from jax.interpreters import mlir, pxla, xla
    from jaxlib import xla_client
    device = backend.get_default_device()
    assert device == jax.devices()[0] and isinstance(backend.get_backend(), xla.Backend)
    assert backend.backend_xla_version() is None and hasattr(ifrt_programs, "make_hlo_program")
    options = backend.get_compile_options(1, 1, [[0]], {"xla_cpu_enable_fast_math": "False"})
    assert options.env_option_overrides == [("xla_cpu_enable_fast_math", "False")] and options.num_replicas == 1
    with lowering.JaxIrContext():
        module = ir.Module.parse(
            "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> "
            "{ %0 = stablehlo.add %x, %x : tensor<2xf32> return %0 : tensor<2xf32> }")
    for made in (options, pxla.create_compile_options(None, False, [True], [True], None, [device], {})):
        program = device.client.compile_and_load(
            mlir.module_to_bytecode(module), xla_client.DeviceList((device,)), made)
        print(np.asarray(program.execute_sharded([jax.numpy.ones(2)]).disassemble_into_single_device_arrays()[0][0]))
    split = backend.get_compile_options(2, 3)
    print(split.num_replicas, split.executable_build_options.num_partitions)

    @functools.lru_cache
    def cached(x):
        return object()
    backend.register_backend_cache(cached, "a cache")
    first = cached(1)
    assert cached(1) is first
    backend.clear_in_memory_compilation_cache()
    assert cached(1) is not first

    whole = xla_client.HloSharding.replicate()
    text = sharding.get_serialized_proto_from_hlo_sharding(whole)
    assert sharding.get_hlo_sharding_from_serialized_proto(text) == whole
    assert sharding.get_op_sharding_from_serialized_proto(text).SerializeToString() == text
    with ir.Context() as context:
        context.append_dialect_registry(lowering.upstream_dialects)
        context.load_all_available_dialects()
        print(str(context.dialects["arith"]).split()[1])
    """
    assert run(text).splitlines() == ["[2. 2.]", "[2. 2.]", "2 3", "arith"]


def test_transposed_convolutions_of_stax(run):
    text = """
    import jax, numpy as np
    from jax.example_libraries import optimizers, stax
    rng = np.random.default_rng(0)

    def spread(x, w, strides):  # a copy of the kernel for each element of NHWC
        n, height, width, _ = x.shape
        rows, columns = w.shape[:2]
        out = np.zeros((n, (height - 1) * strides[0] + max(rows, strides[0]),
                        (width - 1) * strides[1] + max(columns, strides[1]), w.shape[3]))
        for i in range(height):
            for j in range(width):
                at = np.s_[:, i * strides[0]:i * strides[0] + rows, j * strides[1]:j * strides[1] + columns]
                out[at] += np.einsum("nc,hwco->nhwo", x[:, i, j], w[::-1, ::-1])
        return out

    for window, strides in (((3, 3), (1, 1)), ((3, 2), (2, 1)), ((2, 3), (3, 2))):
        init, apply = stax.ConvTranspose(5, window, strides)
        shape, (w, b) = init(jax.random.key(0), (2, 4, 3, 6))
        x = rng.normal(size=(2, 4, 3, 6)).astype(np.float32)
        out = apply((w, b), x)
        wanted = spread(x.astype(float), np.asarray(w, float), strides) + np.asarray(b, float)
        assert out.shape == tuple(shape) == wanted.shape
        # `lax.conv_transpose` correlates with the kernel: its copies are reversed.
        np.testing.assert_allclose(out, wanted, atol=1e-4)
    init, apply = stax.Conv1DTranspose(5, (3,), padding="SAME", b_init=stax.ones, W_init=stax.zeros)
    shape, params = init(jax.random.key(0), (2, 4, 6))
    np.testing.assert_array_equal(apply(params, x[:, :, 0]), np.ones(shape))
    init, apply = stax.GeneralConvTranspose(("NCHW", "OIHW", "NCHW"), 5, (3, 3))
    print(init(jax.random.key(0), (2, 6, 4, 4))[0], optimizers.Step, optimizers.InitFn.__args__[1].__name__)
    """
    assert run(text) == "(2, 5, 6, 6) <class 'int'> OptimizerState"
