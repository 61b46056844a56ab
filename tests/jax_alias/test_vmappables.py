"""Values of a library's own classes that `vmap` maps over: `batching.register_vmappable`."""


def test_named_axes(run):
    text = """
    import dataclasses, jax, jax.numpy as jnp, numpy as np
    from jax.interpreters import batching

    class Named:
        def __init__(self, names, data): self.names, self.data = tuple(names), data

    @dataclasses.dataclass(frozen=True)
    class Axis:
        name: str

    def to_elt(cont, get_idx, x, spec):
        at = x.names.index(spec.name)
        return Named([n for n in x.names if n != spec.name], cont(x.data, at))

    def from_elt(cont, size, elt, spec):
        return Named([spec.name, *elt.names], cont(size, elt.data, 0))

    batching.register_vmappable(Named, Axis, int, to_elt, from_elt, None)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    named, y = Named("ij", jnp.asarray(x)), np.array([1, 2, 3], np.float32)

    def f(v, s):
        assert v.names == ("i",) and v.data.shape == (2,)
        return Named(v.names, v.data * s), v.data + s, {"sum": v.data.sum()}

    mapped = jax.vmap(f, in_axes=(Axis("j"), 0), out_axes=(Axis("k"), 1, 0))
    for call in (mapped, lambda *args: jax.tree.map(lambda z: z, mapped(*args))):
        own, shifted, sums = call(named, y)
        assert own.names == ("k", "i")
        np.testing.assert_allclose(own.data, (x * y).T)
        np.testing.assert_allclose(shifted, x + y)
        np.testing.assert_allclose(sums["sum"], x.sum(0))

    total = lambda d: jax.vmap(lambda v: (v.data**2).sum(), in_axes=Axis("i"))(Named("ij", d)).sum()
    np.testing.assert_allclose(jax.jit(jax.grad(total))(x), 2 * x)
    twice = jax.vmap(jax.vmap(lambda v: v.data * 2, in_axes=Axis("i")), in_axes=Axis("j"))
    np.testing.assert_allclose(twice(named), 2 * x.T)
    scaled = jax.vmap(lambda v, s: v.data * s, in_axes=(Axis("i"), None))(named, 3.0)
    np.testing.assert_allclose(scaled, 3 * x)
    np.testing.assert_allclose(jax.vmap(lambda s, y: s * y, in_axes=(0, None))(y, 2.0), 2 * y)
    ends = jax.vmap(lambda v, k: (v.data.sum(), k, None), in_axes=(Axis("j"), None), out_axes=(0, None, 0))(named, 7)
    assert ends[1] == 7 and ends[2] is None
    try:
        batching.register_vmappable(Named, Axis, int, to_elt, from_elt, None)
    except ValueError as error:
        print(type(error).__name__)
    try:
        jax.vmap(lambda y: y, in_axes=(None,))(y)
    except ValueError as error:
        print("axis_size" in str(error))
    batching.unregister_vmappable(Named)
    np.testing.assert_allclose(jax.vmap(jnp.sin)(y), np.sin(y), rtol=1e-6)
    """
    assert run(text).split() == ["ArgumentError", "True"]
