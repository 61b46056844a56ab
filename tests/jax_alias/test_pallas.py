"""Programs with Pallas kernels, under JAX's names."""


def test_a_program_with_a_kernel(run):
    text = """
    import functools
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas import triton as plgpu

    def kernel(x_ref, y_ref, o_ref, acc_ref, *, steps):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == steps - 1)
        def _():
            o_ref[...] = acc_ref[...].astype(o_ref.dtype)

    @functools.partial(jax.jit, static_argnames=["b"])
    def matmul(x, y, *, b=4):
        (m, k), n = x.shape, y.shape[1]
        return pl.pallas_call(
            functools.partial(kernel, steps=k // b),
            grid_spec=pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=0,
                in_specs=[pl.BlockSpec((b, b), lambda i, j, k: (i, k)), pl.BlockSpec((b, b), lambda i, j, k: (k, j))],
                out_specs=pl.BlockSpec((b, b), lambda i, j, k: (i, j)),
                scratch_shapes=[pltpu.VMEM((b, b), jnp.float32)],
                grid=(m // b, n // b, k // b),
            ),
            out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
            interpret=True,
        )(x, y)

    x, y = np.random.default_rng(0).normal(size=(2, 8, 8)).astype(np.float32)
    np.testing.assert_allclose(matmul(x, y), np.float64(x) @ y, rtol=1e-4, atol=1e-4)

    def add(x_ref, o_ref):
        place = pl.program_id(0) * 4
        mask = place + jnp.arange(4) < x_ref.shape[0]
        part = pl.ds(place, 4)
        plgpu.store(o_ref.at[part], plgpu.load(x_ref.at[part], mask=mask, other=0.0) + 1, mask=mask)

    out = pl.pallas_call(add, jax.ShapeDtypeStruct((10,), jnp.float32), grid=(pl.cdiv(10, 4),), interpret=True)
    print(np.asarray(out(jnp.arange(10.0))).tolist() == list(range(1, 11)), jax.experimental.pallas is pl)
    """
    assert run(text).split() == ["True", "True"]


def test_names_that_are_missing_say_so(run):
    text = """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu
    for module, name in ((pl, "lower_as_mlir"), (pltpu, "BufferedRef")):
        try:
            getattr(module, name)("")
        except (AttributeError, NotImplementedError) as error:
            print(type(error).__name__)
    """
    assert run(text).split() == ["MissingNameError", "MissingNameError"]
