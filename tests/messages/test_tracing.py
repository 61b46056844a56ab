"""Errors for traced values that are used as numbers, or after their transformation has returned."""

import numpy as np
import pytest
from support.messages import line_of, refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax

X = np.ones(3, np.float32)


def branch(x):
    if x > 0:  # the use
        return x
    return -x


def to_bool(x):
    return bool(x)  # the use


def to_int(x):
    return int(x)  # the use


def to_float(x):
    return float(x)  # the use


def to_complex(x):
    return complex(x)  # the use


def to_range(x):
    return [x for _ in range(x)]  # the use


def to_numpy(x):
    return np.asarray(x)  # the use


def to_item(x):
    return x.item()  # the use


def to_loop(x):
    while x < 10:  # the use
        x = x * 2
    return x


USES = [branch, to_bool, to_int, to_float, to_complex, to_range, to_numpy, to_item, to_loop]


@pytest.mark.parametrize("fun", USES, ids=lambda f: f.__name__)
def test_a_traced_value_is_no_number(fun):
    value = 3 if fun is to_range else 3.0
    message = refusal(lambda: ft.jit(fun)(value), errors.ConcretizationError, TypeError)
    says(message.head, "i32[]" if fun is to_range else "bool[]" if fun in (branch, to_loop) else "f32[]")
    says(message.under, f"jit({fun.__name__})")
    says(message.at, line_of(fun, "# the use"), fun.__name__)


@pytest.mark.parametrize("fun", [to_float, to_numpy, branch], ids=lambda f: f.__name__)
def test_a_mapped_value_is_no_number(fun):
    message = refusal(lambda: ft.vmap(fun)(X), errors.ConcretizationError)
    says(message.under, f"vmap({fun.__name__})")
    says(message.at, line_of(fun, "# the use"))


def test_the_chain_names_every_transformation_outermost_first():
    message = refusal(lambda: ft.jit(lambda x: ft.vmap(branch)(x).sum())(X), errors.ConcretizationError)
    says(message.under, "jit(<lambda>) > vmap(branch)")
    message = refusal(lambda: ft.vmap(ft.grad(ft.jit(branch)))(X), errors.ConcretizationError)
    says(message.under, "jit(branch)")


def test_numpy_functions_do_not_take_traced_values():
    def call(x):
        return np.sin(x)  # the call

    with pytest.raises(TypeError):
        ft.jit(call)(X)


def test_a_boolean_mask_has_no_static_shape():
    def mask(x):
        return x[x > 0]  # the mask

    message = refusal(lambda: ft.jit(mask)(X), errors.FtError, TypeError)
    says(message.head, "bool[3]")
    says(message.at, line_of(mask, "# the mask"))
    says(message.remedy, "where")


# ------------------------------------------------------------------------------------------------------------- leaks
def leaker(transform):
    kept = []

    def keep(x):
        y = x * 2.0  # where it was made
        kept.append(y)
        return fnp.sum(y)

    transform(keep)(X)
    return keep, kept[0]


TRANSFORMS = {"jit": ft.jit, "grad": ft.grad, "vmap": ft.vmap, "linearize": lambda f: lambda x: ft.linearize(f, x),
              "make_jaxpr": ft.make_jaxpr}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_leak_names_where_the_value_was_made(name):
    keep, leaked = leaker(TRANSFORMS[name])
    message = refusal(lambda: fnp.sin(leaked), errors.LeakError, RuntimeError)
    says(message.head, "f32[", name, "already returned")
    if name in ("jit", "make_jaxpr"):
        says(message.head, line_of(keep, "# where it was made"))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_leak_is_found_by_every_use(name):
    _, leaked = leaker(TRANSFORMS[name])
    for use in (
        lambda: leaked + 1.0,
        lambda: ft.jit(lambda x: x * leaked)(X),
        lambda: ft.jit(fnp.sin)(leaked),
        lambda: ft.grad(lambda x: fnp.sum(x * leaked))(X),
        lambda: ft.vmap(lambda x: x * leaked)(X) if leaked.ndim == 0 else ft.vmap(lambda x: x * leaked[0])(X),
    ):
        refusal(use, errors.LeakError)


def test_a_leaked_value_has_a_harmless_repr():
    for transform in TRANSFORMS.values():
        _, leaked = leaker(transform)
        assert "f32[" in repr(leaked)


# ------------------------------------------------------------------------------------------------------- axis names
def test_an_axis_name_that_no_transformation_binds():
    def reduce(x):
        return lax.psum(x, "rows")  # the sum

    message = refusal(lambda: reduce(X), errors.FtError)
    says(message.head, "rows")
    message = refusal(lambda: ft.vmap(reduce, axis_name="columns")(X), errors.FtError)
    says(str(message.error), "rows", "columns")
    says(message.at, line_of(reduce, "# the sum"))
