"""Requirements in the text of the array API standard 2024.12: special values, dtypes, inspection, errors.

The values are those of the standard's text, which follows C99 and IEEE 754. NumPy gives the same values, except where
a comment names a difference.
"""

import inspect
import itertools
import operator
import pickle

import mpmath
import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

INF, NAN = np.inf, np.nan
REAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, -2.0, -2.5, 3.0, -3.0, INF, -INF, NAN]
UNARY = "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor log log1p log2 log10 negative positive "
UNARY += "reciprocal round sign signbit sin sinh square sqrt tan tanh trunc isfinite isinf isnan"
BINARY = "add atan2 copysign divide equal greater hypot less_equal logaddexp multiply nextafter pow "
BINARY += "remainder subtract"
COMPLEX = "abs acos acosh asin asinh atan atanh cos cosh exp log log2 log10 sign sinh sin sqrt square tan tanh"
COMPLEX += " isfinite isinf isnan negative"


def same_specials(got, want, where) -> None:
    """Assert equality up to rounding, with the same NaN, infinities and signs of zeros."""
    got, want = np.asarray(got), np.asarray(want)
    np.testing.assert_allclose(got, want, rtol=1e-13, err_msg=str(where))
    if want.dtype.kind == "f":
        zero = (want == 0) & ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]), err_msg=str(where))


@pytest.mark.parametrize("name", UNARY.split())
def test_special_values(name):
    x = np.array(REAL)
    with np.errstate(all="ignore"):
        same_specials(getattr(fnp, name)(x), getattr(np, name)(x), name)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_floor_division_is_the_floor_of_the_quotient(dtype):
    # The standard's table. NumPy differs where an operand is infinite: it gives NaN for inf // 2, -1 for -1 // inf.
    x, y = (np.array(v).astype(fnp.dtype(dtype)) for v in zip(*itertools.product(REAL, repeat=2), strict=True))
    with np.errstate(all="ignore"):
        want = np.floor(x.astype("float64") / y.astype("float64"))
    divided = fnp.asarray(x)
    divided //= fnp.asarray(y)
    compiled = ft.jit(lambda a, b: a // b)(x, y)
    for got in (
        fnp.floor_divide(x, y),
        divided,
        compiled,
        fnp.divmod(x, y)[0],
        fnp.floor_divide.outer(x, y).diagonal(),
    ):
        assert got.dtype == dtype
        same_specials(np.asarray(got).astype("float64"), want, dtype)
    with np.errstate(all="ignore"):
        rest = np.remainder(x.astype("float64"), y.astype("float64"))
    same_specials(np.asarray(fnp.divmod(x, y)[1]).astype("float64"), rest, dtype)


def test_floor_division_by_infinities_has_no_derivative():
    for x, y in ((INF, 2.0), (2.0, INF), (-2.0, INF), (1.0, 0.0), (7.0, 2.0)):
        assert [float(g) for g in ft.grad(fnp.floor_divide, argnums=(0, 1))(x, y)] == [0, 0]


@pytest.mark.parametrize("name", BINARY.split())
def test_special_pairs(name):
    a, b = np.array(list(itertools.product(REAL, REAL))).T
    with np.errstate(all="ignore"):
        same_specials(getattr(fnp, name)(a, b), getattr(np, name)(a, b), name)


@pytest.mark.parametrize("name", COMPLEX.split())
def test_special_complex_values(name):
    parts = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, INF, -INF, NAN]
    z = np.array([complex(a, b) for a, b in itertools.product(parts, parts)])
    with np.errstate(all="ignore"):
        got, want = np.asarray(getattr(fnp, name)(z)), getattr(np, name)(z)
    # Signs of infinite or zero parts are unspecified where both parts of the argument are infinite or NaN.
    open_sign = ~np.isfinite(z.real) & ~np.isfinite(z.imag)
    for part in ("real", "imag") if want.dtype.kind == "c" else ("real",):
        g, w = getattr(got, part), getattr(want, part)
        if want.dtype.kind != "b":
            g, w = np.where(open_sign, abs(g), g), np.where(open_sign, abs(w), w)
        same_specials(g, w, f"{name}.{part}")


def test_expm1_of_infinities():
    got = np.asarray(fnp.expm1(np.array([complex(INF, 0), complex(-INF, INF), complex(-INF, NAN), complex(NAN, 0)])))
    assert got[0] == complex(INF, 0)
    assert (np.abs(got[1:3].real + 1) == 0).all() and (got[1:3].imag == 0).all()
    assert np.isnan(got[3].real) and got[3].imag == 0


SMALL = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_dtypes_of_sums(name):
    for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float32", "complex64"):
        x = fnp.ones(3, dtype)
        if dtype == "bool" and name.startswith("cumulative"):
            continue
        assert getattr(fnp, name)(x).dtype == SMALL.get(dtype, dtype), dtype
        assert getattr(fnp, name)(x, dtype="float64").dtype == "float64"


def test_inspection():
    info = fnp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() == info.devices()[0] == fnp.zeros(1).device
    for device in info.devices():
        assert fnp.zeros(2, device=device).device == device
        assert fnp.fft.fftfreq(4, device=device).device == device
    assert info.default_dtypes(device=info.default_device()) == {
        "real floating": fnp.zeros(1).dtype,
        "complex floating": fnp.asarray([1j]).dtype,
        "integral": fnp.arange(3).dtype,
        "indexing": fnp.argmax(fnp.zeros(3)).dtype,
    }
    every = info.dtypes()
    assert len(every) == 13 and all(getattr(fnp, name) == dtype for name, dtype in every.items())
    kinds = ("bool", "signed integer", "unsigned integer", "real floating", "complex floating")
    assert info.dtypes(kind=kinds) == every
    assert info.dtypes(kind="numeric") == {k: v for k, v in every.items() if k != "bool"}
    assert list(info.dtypes(kind="unsigned integer")) == ["uint8", "uint16", "uint32", "uint64"]
    with pytest.raises(ValueError, match="kind"):
        info.dtypes(kind="quaternions")
    with pytest.raises(ValueError, match="device"):
        info.dtypes(device="abacus")


def test_dtype_questions():
    assert isinstance(fnp.can_cast(fnp.int8, fnp.int16), bool)
    assert fnp.can_cast(fnp.ones(2, "int8"), fnp.int32) and not fnp.can_cast(fnp.float64, fnp.float32)
    assert fnp.can_cast(fnp.float32, fnp.complex64) and not fnp.can_cast(fnp.int32, fnp.uint64)
    for dtype, bits in (("float32", 32), ("float64", 64), ("complex64", 32), ("complex128", 64)):
        limits = fnp.finfo(fnp.ones(1, dtype))
        assert limits.bits == bits and limits.dtype == f"float{bits}"
        assert all(isinstance(getattr(limits, a), float) for a in ("eps", "max", "min", "smallest_normal"))
    assert pickle.loads(pickle.dumps(limits)).eps == np.finfo("float64").eps
    assert fnp.finfo("bfloat16").max == 3.3895313892515355e38
    limits = fnp.iinfo(fnp.ones(1, "uint8"))
    assert (limits.bits, limits.min, limits.max, limits.dtype) == (8, 0, 255, np.dtype("uint8"))
    assert fnp.isdtype(fnp.float32, (fnp.int8, "real floating")) and not fnp.isdtype(fnp.bool, "numeric")
    assert fnp.result_type(fnp.ones(1, "int8"), 3, fnp.uint8) == fnp.int16
    assert fnp.result_type(fnp.float32, 1j) == fnp.complex64


# Signatures as the standard writes them, without annotations and defaults.
SPECIFIED = """
searchsorted(x1, x2, /, *, side, sorter)
count_nonzero(x, /, *, axis, keepdims)
diff(x, /, *, axis, n, prepend, append)
take_along_axis(x, indices, /, *, axis)
clip(x, /, min, max)
repeat(x, repeats, /, *, axis)
tile(x, repetitions, /)
unstack(x, /, *, axis)
moveaxis(x, source, destination, /)
nextafter(x1, x2, /)
reciprocal(x, /)
cumulative_sum(x, /, *, axis, dtype, include_initial)
vecdot(x1, x2, /, *, axis)
from_dlpack(x, /, *, device, copy)
roll(x, /, shift, *, axis)
reshape(x, /, shape, *, copy)
sort(x, /, *, axis, descending, stable)
squeeze(x, /, axis)
sum(x, /, *, axis, dtype, keepdims)
var(x, /, *, axis, correction, keepdims)
astype(x, dtype, /, *, copy, device)
linspace(start, stop, /, num, *, dtype, device, endpoint)
eye(n_rows, n_cols, /, *, k, dtype, device)
full_like(x, /, fill_value, *, dtype, device)
unique_all(x, /)
tensordot(x1, x2, /, *, axes)
expand_dims(x, /, *, axis)
flip(x, /, *, axis)
take(x, indices, /, *, axis)
nonzero(x, /)
where(condition, x1, x2, /)
argsort(x, /, *, axis, descending, stable)
isdtype(dtype, kind)
stack(arrays, /, *, axis)
concat(arrays, /, *, axis)
tril(x, /, *, k)
"""


@pytest.mark.parametrize("line", SPECIFIED.split("\n")[1:-1])
def test_signatures(line):
    """Calls that the standard allows are accepted: parameters after the / can be passed by keyword."""
    name, words = line[:-1].split("(")
    words, parameters = words.split(", "), inspect.signature(getattr(fnp, name)).parameters
    by_place = words.index("/") if "/" in words else 0
    named = [w for w in words[by_place + 1 if by_place else 0 :] if w != "*"]
    assert all(parameters[w].kind is not inspect.Parameter.POSITIONAL_ONLY for w in named)
    takers = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    assert len(takers) >= by_place


def test_in_place_operators_make_new_arrays():
    x = y = fnp.asarray([6, 3])
    host = np.array([6, 3])
    for update in ("iadd 1", "imul 2", "isub 3", "ifloordiv 2", "ipow 2", "ilshift 1", "ior 1", "iand 31", "ixor 2",
                   "irshift 1", "imod 7"):  # fmt: skip
        name, number = update.split()
        x, host = (getattr(operator, name)(v, int(number)) for v in (x, host))
        assert x.tolist() == host.tolist(), update
    assert y.tolist() == [6, 3]
    m = fnp.eye(2)
    m @= 2 * fnp.eye(2)
    m /= 4
    assert m.tolist() == [[0.5, 0.0], [0.0, 0.5]]


def test_refusals():
    f, i, b = fnp.ones(2), fnp.ones(2, "int32"), fnp.ones(2, "bool")
    for refused in (lambda: f & f, lambda: ~f, lambda: b - b, lambda: f << f):
        with pytest.raises(TypeError):
            refused()
    with pytest.raises(TypeError):
        fnp.floor(fnp.asarray([1j]))
    with pytest.raises(ValueError):
        bool(f)
    with pytest.raises(TypeError):
        range(fnp.asarray(1.0))
    with pytest.raises(IndexError):
        i[5]
    with pytest.raises(ValueError):
        fnp.zeros((2, 2)).mT @ fnp.zeros((3, 2))
    with pytest.raises(ValueError):
        _ = fnp.ones(2).mT
    with pytest.raises(OverflowError):
        fnp.ones(2, "int8") + 1000


def test_masks():
    x, host = fnp.asarray(np.arange(6.0).reshape(2, 3)), np.arange(6.0).reshape(2, 3)
    for mask in (
        True,
        False,
        np.array(True),
        np.array(False),
        host > 2,
        np.array([True, False]),
        np.zeros((2, 0), bool),
    ):
        want = host[mask] if np.shape(mask) != (2, 0) else np.zeros(0)
        for index in (mask, (mask,), fnp.asarray(mask)):
            assert x[index].shape == want.shape and x[index].tolist() == want.tolist()
    assert fnp.asarray(3.0)[fnp.asarray(True)].tolist() == [3.0]
    assert fnp.asarray(3.0)[False].shape == (0,)
    for wrong in (
        np.array([True, False, True]),
        np.ones((2, 2), bool),
        np.ones((2, 3, 1), bool),
        np.ones((3, 3), bool),
    ):
        with pytest.raises(IndexError):
            x[wrong]
        with pytest.raises(IndexError):
            x.at[wrong].set(0)
    assert x.at[True].add(1).tolist() == (host + 1).tolist()
    assert x.at[False].add(1).tolist() == host.tolist()
    assert x.at[False].get().shape == (0, 2, 3)
    switched = ft.jit(lambda v, on: v.at[on].set(0.0))
    assert switched(x, True).tolist() == np.zeros((2, 3)).tolist() and switched(x, False).tolist() == host.tolist()


def test_tolerances_may_differ_by_matrix():
    a = np.diag([1.0, 1e-2, 1e-5])[None] * np.ones((2, 1, 1))
    rtol = np.array([1e-3, 1e-7])
    assert fnp.linalg.matrix_rank(a, rtol=rtol).tolist() == np.linalg.matrix_rank(a, rtol=rtol).tolist() == [2, 3]
    np.testing.assert_allclose(fnp.linalg.pinv(a, rtol=rtol), np.linalg.pinv(a, rtol=rtol))
    for tol in (1e-3, np.array([1e-3, 1e-7])):
        assert fnp.linalg.matrix_rank(a, tol=tol).tolist() == np.linalg.matrix_rank(a, tol=tol).tolist()
    with pytest.raises(ValueError, match="both"):
        fnp.linalg.matrix_rank(a, 1e-3, tol=1e-3)
    assert fnp.linalg.pinv(a[0], rtol=rtol[:, None]).shape == (2, 1, 3, 3)


def test_questions_about_nothing():
    with pytest.raises(ValueError, match="atleast_1d"):
        fnp.nonzero(fnp.asarray(1))
    with pytest.raises(TypeError, match="index"):
        [1, 2][fnp.asarray(True)]


def test_copies_have_memory_of_their_own():
    x = fnp.ones((2, 2))
    for copied in (x.reshape(2, 2, copy=True), fnp.reshape(x, (2, 2), copy=True), fnp.asarray(x, copy=True),
                   fnp.astype(x, x.dtype, copy=True), x.copy()):  # fmt: skip
        assert copied.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert fnp.reshape(x, (2, 2), copy=False).tolist() == x.tolist()
    with pytest.raises(ValueError, match="one dimension"):
        fnp.searchsorted(x, 1.0)
    with pytest.raises(ValueError, match="method"):
        fnp.searchsorted(x[0], 1.0, method="guess")


def test_full_of_arrays():
    assert fnp.full((2, 3), fnp.arange(3), device="cpu").tolist() == [[0, 1, 2]] * 2
    for values in (fnp.ones((3, 2)), np.ones((3, 2)), fnp.ones(3), [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="broadcast"):
            fnp.full((2,), values)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["atan", "atanh", "asin", "acos", "asinh", "acosh", "log1p", "sqrt", "sign", "tanh"])
def test_complex_functions_of_large_and_small_numbers(name, dtype):
    info = np.finfo(dtype)
    sizes = 10.0 ** np.linspace(np.log10(float(info.tiny)) + 3, np.log10(float(info.max)) - 1, 12)
    parts = np.concatenate([sizes, -sizes, [0.0, 0.5, -2.0]])
    z = np.array([complex(a, b) for a, b in itertools.product(parts, parts) if a or b], dtype)
    with np.errstate(all="ignore"):
        want = np.asarray(getattr(np, name)(z.astype("complex128")))
    if name == "log1p":  # NumPy's log1p loses the digits of small numbers
        with mpmath.workprec(2400):
            want = np.array([complex(mpmath.log(1 + mpmath.mpc(v))) for v in z.tolist()])
    function = getattr(fnp, name)
    alone = ft.jit(function)  # XLA rewrites products of constants at rank 0 only
    single = np.array([alone(v) for v in fnp.asarray(z)[::3]])
    for got, right in ((np.asarray(function(z)), want), (single, want[::3])):
        assert np.isfinite(got).all()
        apart = abs(got.astype("complex128") - right)
        assert (apart <= 20 * info.eps * abs(right) + float(info.tiny)).all()


@pytest.mark.parametrize("shapes", [((3,), (1,)), ((1,), (3,)), ((2, 3), (2, 1)), ((3,), (4,)), ((2, 3), (4, 3))])
def test_products_do_not_broadcast_what_they_contract(shapes):
    x, y = map(fnp.ones, shapes)
    for product in (fnp.vecdot, fnp.linalg.vecdot, fnp.linalg.cross, fnp.vdot):
        with pytest.raises(ValueError, match=r"broadcast|sizes|components|differ"):
            product(x, y)
    if x.shape[-1] != y.shape[-1]:
        with pytest.raises(ValueError, match="size"):
            fnp.tensordot(x, y, ((-1,), (-1,)))
    assert fnp.vecdot(fnp.ones((2, 1, 3)), fnp.ones((4, 3))).shape == (2, 4)


X = fnp.ones((2, 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda: fnp.expand_dims(X, axis=3), lambda: fnp.expand_dims(X, axis=-4), lambda: fnp.sum(X, axis=2),
        lambda: fnp.squeeze(X, 5), lambda: fnp.moveaxis(X, 0, 2), lambda: fnp.flip(X, axis=-3), lambda: X.max(2),
        lambda: fnp.concat([X, X], axis=2), lambda: fnp.stack([X, X], axis=-4), lambda: fnp.take(X, [0], axis=2),
        lambda: fnp.unstack(X, axis=2), lambda: fnp.permute_dims(X, (0, 2)), lambda: fnp.roll(X, 1, axis=2),
        lambda: fnp.sort(X, axis=2), lambda: fnp.cumulative_sum(X, axis=2), lambda: fnp.vecdot(X, X, axis=-3),
        lambda: fnp.fft.fft(X, axis=2), lambda: fnp.fft.fftshift(X, axes=2), lambda: fnp.linspace(X, X, axis=3),
        lambda: fnp.linalg.vector_norm(X, axis=2), lambda: ft.nn.softmax(X, axis=2), lambda: ft.nn.glu(X, axis=2),
        lambda: ft.lax.cumsum(X, axis=2), lambda: ft.lax.reduce_sum(X, axes=(2,)), lambda: fnp.repeat(X, 2, axis=2),
    ],
)  # fmt: skip
def test_axes_out_of_range_are_index_errors(call):
    with pytest.raises(ft.errors.AxisError) as caught:
        call()
    assert isinstance(caught.value, IndexError) and isinstance(caught.value, ValueError)
