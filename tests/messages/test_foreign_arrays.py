"""Arrays of other libraries and of unusual kinds: masked, in another byte order, or known only by a protocol."""

import subprocess
import sys

import numpy as np
import pytest
from support.messages import read, refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, tree

MASKED = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
WHOLE = np.ma.masked_array([1.0, 2.0, 3.0], [False, False, False])
X = fnp.ones(3, "float64")

USES = {
    "asarray": fnp.asarray,
    "array with a dtype": lambda m: fnp.array(m, "float32"),
    "a list": lambda m: fnp.asarray([[m, m]]),
    "device_put": lambda m: ft.device_put({"a": m}),
    "a reduction": fnp.sum,
    "an elementwise function": fnp.sin,
    "a function of shapes": lambda m: fnp.reshape(m, (3, 1)),
    "a list of arrays": lambda m: fnp.concatenate([X, m]),
    "where": lambda m: fnp.where(X > 0, m, 0),
    "an operator": lambda m: X + m,
    "the operator of the masked array": lambda m: m * X,
    "an update": lambda m: X.at[:].set(m),
    "jit": lambda m: ft.jit(lambda x: x + 1)(m),
    "a closure": lambda m: ft.jit(lambda x: x + m)(X),
    "grad": lambda m: ft.grad(lambda x: fnp.sum(x * x))(m),
    "vmap": lambda m: ft.vmap(lambda x: x * 2)(m),
    "scan": lambda m: ft.lax.scan(lambda c, x: (c + x, c), fnp.zeros((), "float64"), m),
    "a result": lambda m: ft.jit(lambda: m)(),
}


@pytest.mark.parametrize("use", USES)
def test_masked_elements_are_not_read(use):
    with pytest.raises(errors.DtypeError) as caught:
        USES[use](MASKED)
    message = read(caught.value)
    says(message.head, "1 of", "masked", "no mask")
    says(message.remedy, ".filled(", ".compressed()", ".data")


@pytest.mark.parametrize("use", USES)
def test_a_masked_array_of_which_nothing_is_masked_is_its_data(use):
    plain = np.asarray(WHOLE)
    for got, want in zip(tree.leaves(USES[use](WHOLE)), tree.leaves(USES[use](plain)), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_masks_are_seen_by_programs_that_were_compiled_for_plain_arrays():
    doubled = ft.jit(lambda x: x * 2)
    for _ in range(3):
        doubled(np.ones(3))
        fnp.sin(np.ones(3))
    refusal(lambda: doubled(MASKED), errors.DtypeError)
    refusal(lambda: fnp.sin(MASKED), errors.DtypeError)


def test_masked_arrays_are_known_whenever_numpy_loads_them():
    script = """
import sys
import numpy as np, functorch_like as ft
assert "numpy.ma" not in sys.modules
f = ft.jit(lambda x: x * 2)
f(np.ones(3)), f(np.ones(3))
m = np.ma.masked_array(np.ones(3), [0, 1, 0])
assert np.ma.__spec__.loader is np.ma.__loader__ and "Source" in type(np.ma.__loader__).__name__
try:
    f(m)
except TypeError as e:
    print("refused" if "masked" in str(e) else e)
"""
    out = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout == "refused\n"


def test_the_masked_constant_is_no_number():
    refusal(lambda: fnp.sum(np.ma.masked), errors.DtypeError)
    refusal(lambda: X + np.ma.masked, errors.DtypeError)


# ---------------------------------------------------------------------------------------------------------- byte order
FOREIGN = np.arange(3.0, dtype=">f4" if sys.byteorder == "little" else "<f4")


def test_another_byte_order_is_converted_where_arrays_are_made():
    for made in (fnp.asarray(FOREIGN), fnp.array(FOREIGN), ft.device_put(FOREIGN), fnp.asarray([FOREIGN])[0]):
        assert made.dtype == "float32" and made.tolist() == [0, 1, 2]
    assert fnp.asarray(FOREIGN, "int8").tolist() == [0, 1, 2]


def test_the_remedy_gives_arrays_like_others():
    native = FOREIGN.astype(FOREIGN.dtype.newbyteorder("="))
    assert fnp.asarray(native).aval is ft.jit(lambda x: x)(native).aval is fnp.zeros(3).aval
    assert fnp.asarray(native).aval.dtype is fnp.zeros(3).aval.dtype and repr(ft.typeof(native)) == "f32[3]"


@pytest.mark.parametrize("use", [fnp.sum, fnp.sin, lambda x: X + x, ft.jit(lambda x: x), ft.grad(fnp.sum)])
def test_another_byte_order_is_refused_with_the_conversion(use):
    message = refusal(lambda: use(FOREIGN), errors.DtypeError)
    says(message.head, FOREIGN.dtype.str, "byte order")
    says(message.at, "test_foreign_arrays.py")
    says(message.remedy, 'x.astype(x.dtype.newbyteorder("="))')
    refusal(lambda: fnp.zeros(3, FOREIGN.dtype), errors.DtypeError)


# ----------------------------------------------------------------------------------------------------------- protocols
class Wrapped:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0)


class Jaxlike:
    def __jax_array__(self):
        return fnp.arange(3.0)


@pytest.mark.parametrize("kind", [Wrapped, Jaxlike])
def test_objects_with_a_protocol_are_converted_by_functions_of_arrays_alone(kind):
    """All functions of arrays convert objects with `__jax_array__`; `asarray` alone converts the others."""
    assert fnp.asarray(kind()).tolist() == [0, 1, 2]
    transformed = (ft.jit(lambda x: x), ft.grad(fnp.sum), ft.vmap(fnp.sin), ft.device_put)
    for use in (*transformed, *((fnp.sum, fnp.sin) if kind is Wrapped else ())):
        message = refusal(lambda use=use: use(kind()), errors.DtypeError)
        says(message.head, kind.__name__, "not an array")
        says(message.remedy, "array__", "fnp.asarray(x)")


def test_what_has_no_dlpack():
    for x in (3, [1.0], object()):
        message = refusal(lambda x=x: fnp.from_dlpack(x), AttributeError, TypeError)
        says(message.head, type(x).__name__, "__dlpack__")
        says(message.remedy, "fnp.asarray")


# ---------------------------------------------------------------------------------------------------------- operators
def test_operators_refuse_lists():
    for combine in (
        lambda x: x + [1, 2, 3],
        lambda x: (1, 2, 3) * x,
        lambda x: x == [1.0, 1.0, 1.0],
        lambda x: x @ [1],
    ):
        for x in (X, fnp.ones(3)):
            message = refusal(lambda combine=combine, x=x: combine(x), errors.DtypeError, TypeError)
            says(message.head, "list" if "list" in message.head else "tuple")
            says(message.remedy, "fnp.asarray")
        with pytest.raises(errors.DtypeError, match="not combined"):
            ft.jit(combine)(X)


# -------------------------------------------------------------------------------------------------------------- einsum
def test_einsum_with_its_arguments_exchanged():
    message = refusal(lambda: fnp.einsum(fnp.ones((2, 3)), "ij->ji"), errors.ArgumentError, ValueError)
    says(message.head, "'ij->ji'", "after")
    says(message.remedy, "fnp.einsum('ij->ji', ")
    says(refusal(lambda: fnp.einsum(X, X, "i,i"), errors.ArgumentError).remedy, "first")


@pytest.mark.parametrize("args", [(X, 5), (3,), (X, [0.5]), (X, [99]), (X, [0], X, [0], 0)])
def test_einsum_with_labels_that_are_none(args):
    says(refusal(lambda: fnp.einsum(*args), errors.ArgumentError).remedy, "ij,jk->ik", "list of ints")


def test_jitted_functions_refuse_the_other_byte_order_after_they_have_run():
    native = FOREIGN.astype(FOREIGN.dtype.newbyteorder("="))
    double, total = ft.jit(lambda x: x * 2), ft.jit(lambda tree: tree["a"].sum())
    for _ in range(2):
        assert double(native).tolist() == [0, 2, 4] and total({"a": native}) == 3
        with pytest.raises(ft.errors.DtypeError, match="newbyteorder"):
            double(FOREIGN)
        with pytest.raises(ft.errors.DtypeError, match="newbyteorder"):
            total({"a": FOREIGN})


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "np.timedelta64(1, 's')"),
        (np.array([3], dtype="timedelta64[s]"), "np.timedelta64(1, 's')"),
        (np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]), "x[name] for name in x.dtype.names"),
        ({1, 2}, "fnp.asarray(sorted(x))"),
        ({"w": 1.0}, "ft.tree.map(f, x)"),
    ],
)
def test_other_kinds_of_values_name_their_conversion(value, remedy):
    with pytest.raises(ft.errors.DtypeError) as e:
        fnp.asarray(value)
    assert remedy in e.value.fix
