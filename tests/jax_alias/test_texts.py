"""Texts and classes by which libraries recognise errors and functions, as JAX gives them."""

# Other compile options: an unknown one, for the error.


def test_failures_of_xla_are_caught_as_jaxlib_s_error_and_can_be_pickled(run):
    text = """
    import pickle
    import jax, jax.numpy as jnp
    from functorch_like.errors import CompileError, OutOfMemoryError

    def caught(f, kind):
        try:
            f()
        except jax.errors.JaxRuntimeError as error:
            again = pickle.loads(pickle.dumps(error))
            assert isinstance(error, kind) and type(error).__name__ == kind.__name__
            assert type(again) is type(error) and str(again) == str(error)
            return True

    lowered = jax.jit(lambda x: x + 1).lower(jnp.ones(2))
    assert caught(lambda: lowered.compile(compiler_options={"no such option": "x"}), CompileError)
    assert caught(lambda: jax.block_until_ready(jax.jit(lambda: jnp.zeros((1 << 23, 1 << 20)) + 1)()), OutOfMemoryError)
    """
    run(text)


def test_checks_show_values_as_arrays_and_name_what_libraries_look_for(run):
    text = """
    import jax, jax.numpy as jnp
    from jax.experimental import checkify

    def f(x, i):
        checkify.check(x[0] > 0, "bad {tree} {n:.2f}", tree={"a": x[0]}, n=x[0])
        return x[i]

    checked = checkify.checkify(jax.jit(f), errors=checkify.all_checks)
    assert checked(jnp.zeros(3), 1)[0].get().startswith("bad {'a': Array(0., dtype=float32)} 0.00")
    assert "out-of-bounds" in checked(jnp.ones(3), 5)[0].get()
    assert checked(jnp.ones(3), 1)[0].get() is None
    try:
        jax.devices("tpu")
    except RuntimeError as error:
        assert "Unknown backend" in str(error)
    else:
        raise AssertionError("there is no tpu")
    """
    run(text)


def test_jitted_functions_are_shown_by_their_class_in_jaxlib(run):
    text = """
    import copy, functools
    import jax

    def f(x):
        return x

    assert repr(jax.jit(f)) == f"<PjitFunction of {f!r}>" == str(jax.jit(f, static_argnums=0))
    assert "PjitFunction" in repr(functools.partial(jax.jit, inline=True)(f))
    assert "PjitFunction" not in repr(jax.vmap(f))
    assert "PjitFunction" in str(type(jax.jit(f))) and "PjitFunction" not in str(type(jax.vmap(f)))
    assert copy.copy(jax.jit(f))(1) == jax.jit(f)(1) == jax.vmap(jax.jit(f))(jax.numpy.ones(1))[0] == 1
    """
    run(text)


def test_members_of_array_like_name_the_kinds_of_scalars(run):
    text = """
    import typing
    import jax, numpy as np

    kinds = typing.get_args(jax.typing.ArrayLike)
    assert kinds == (jax.Array, np.ndarray, np.bool_, np.number, bool, int, float, complex)
    assert isinstance(np.float32(1), kinds) and isinstance(np.True_, kinds) and not isinstance("x", kinds)
    """
    run(text)
