import threading

import ml_dtypes
import numpy as np
import pytest

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.errors import CompileError, DtypeError

F8 = ShapedArray((8,), np.float32)
B8 = ShapedArray((8,), np.bool_)
I8 = ShapedArray((8,), np.int32)
SCALAR = ShapedArray((), np.float32)
BITS = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *("bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e3m4"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "int4", "uint4"),
]


def run(body, outs, *args):
    """Compile a body for these arguments, and run it."""
    arrays = [xla.device_put(a) for a in args]
    module = xla.build("test", [a.aval for a in arrays], body)
    return [xla.to_numpy(r) for r in xla.compile(module, out_avals=outs).execute(arrays)]


@pytest.mark.parametrize("name", BITS)
def test_constants_of_every_dtype_keep_their_bits(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    values = np.arange(6) % 2 if dtype.kind in "bu" or "u" in name else np.arange(6) % 3 - 1
    value = values.astype(dtype).reshape(2, 3)
    one = ShapedArray((4,), dtype)
    empty = ShapedArray((0, 2), dtype)
    outs = [ShapedArray((2, 3), dtype), ShapedArray((), dtype), one, one, empty, empty]

    def body(e):
        same = np.full(4, value[0, 1])
        return [
            e.constant(value),
            e.constant(value[0, 1]),
            e.constant(same),
            e.full(value[0, 1], one),
            e.constant(np.zeros((0, 2), dtype)),
            e.full(0, empty),
        ]

    found = run(body, outs)
    for got, wanted in zip(found[:2], (value, value[0, 1]), strict=True):
        assert got.tobytes() == wanted.tobytes()
    for got in found[2:4]:
        assert got.tobytes() == np.full(4, value[0, 1]).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_constants_keep_nan_zero_sign_and_infinity(dtype):
    value = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, np.finfo(dtype).tiny], dtype)
    assert run(lambda e: [e.constant(value)], [ShapedArray((6,), dtype)])[0].tobytes() == value.tobytes()
    same = np.full(3, np.nan, dtype)
    assert run(lambda e: [e.constant(same)], [ShapedArray((3,), dtype)])[0].tobytes() == same.tobytes()


def test_zeros_of_both_signs_are_not_one_constant():
    found = run(
        lambda e: [e.full(0.0, F8), e.full(-0.0, F8), e.constant(np.array([-0.0, 0.0], "f4"))],
        [F8, F8, ShapedArray((2,), "f4")],
    )
    assert not np.signbit(found[0]).any() and np.signbit(found[1]).all()
    assert np.signbit(found[2]).tolist() == [True, False]


def test_equal_scalars_are_written_once():
    def body(e, x):
        return [e.op("stablehlo.add", [x, e.full(2, F8)], [F8]), e.full(2, F8), e.constant(np.float32(2))]

    text = xla.module_text(xla.build("f", [F8], body))
    assert text.count("stablehlo.constant") == 2


def test_a_constant_of_an_outer_block_is_not_used_inside():
    def body(e, x):
        zero = e.constant(np.float32(0))

        def fold(e, a, b):
            return [
                e.op("stablehlo.add", [e.op("stablehlo.add", [a, b], [SCALAR]), e.constant(np.float32(0))], [SCALAR])
            ]

        attrs = {"dimensions": e.i64s([0])}
        return [e.op("stablehlo.reduce", [x, zero], [SCALAR], attrs, [([SCALAR, SCALAR], fold)])]

    assert run(body, [SCALAR], np.arange(8, dtype=np.float32))[0] == 28


def test_several_results_and_none():
    pair = ShapedArray((2,), np.float32), ShapedArray((2,), np.int32)
    scalars = [ShapedArray((), a.dtype) for a in pair for _ in range(2)]

    def body(e, x, i):
        def less(e, a, b, c, d):
            return [e.compare("LT", a, b, ShapedArray((), np.bool_), "FLOAT")]

        attrs = {"dimension": e.i64(0), "is_stable": e.flag(True)}
        values = e.op("stablehlo.sort", [x, i], pair, attrs, [(scalars, less)])
        assert type(values) is list and e.op("stablehlo.custom_call", [], [], {"call_target_name": e.string("x")}) == []
        return values

    arrays = [xla.device_put(a) for a in (np.array([2, 1], "f4"), np.array([0, 1], "i4"))]
    text = xla.module_text(xla.build("f", [a.aval for a in arrays], body))
    assert "stablehlo.sort" in text and "dimension = 0 : i64" in text


def test_conveniences():
    x = np.array([1, 5, 2, 8, 3, 3, 0, 7], np.float32)

    def body(e, x):
        top = e.reduce("maximum", x, -np.inf, [0], SCALAR)
        wide = e.broadcast_in_dim(top, F8, [])
        hit = e.compare("EQ", x, wide, B8, "FLOAT")
        assert e.convert(x, F8) is x
        return [top, hit, e.convert(hit, I8), e.reduce("add", x, e.constant(np.float32(1)), [0], SCALAR)]

    top, hit, number, total = run(body, [SCALAR, B8, I8, SCALAR], x)
    assert top == 8 and hit.tolist() == (x == 8).tolist() and number.sum() == 1 and total == 30


def test_attributes():
    def body(e, x):
        assert e.i64s([1, 2]) is e.i64s((1, 2)) and str(e.i64s([1, 2])) == "array<i64: 1, 2>"
        assert str(e.i64s(np.array([1, 2]))) == "array<i64: 1, 2>"
        assert str(e.bools([True, False])) == "array<i1: true, false>"
        assert str(e.i64(3)) == "3 : i64" and str(e.i32(3)) == "3 : i32" and str(e.flag(1)) == "true"
        assert str(e.string("a")) == '"a"' and e.attr("[]") is e.attr("[]")
        assert str(e.dense_i64([[0, 1]])) == "dense<[[0, 1]]> : tensor<1x2xi64>"
        assert str(e.dense(np.ones(2, np.float32))) == "dense<1.000000e+00> : tensor<2xf32>"
        assert str(e.type(F8)) == "tensor<8xf32>" and e.platform == "gpu"
        with pytest.raises(CompileError, match="is not an MLIR attribute"):
            e.attr("#stablehlo<nonsense>")
        return [x]

    xla.build("f", [F8], body, platform="gpu")


def test_functions_are_lowered_once():
    count = []

    def inner(e, a):
        count.append(1)
        return [e.op("stablehlo.add", [a, a], [F8])]

    def body(e, x):
        e.ins, e.outs = "mine", "mine"
        for _ in range(3):
            (x,) = e.call(e.function("key", "twice(x)", [F8], [F8], inner), [x], [F8])
        (x,) = e.call(e.function("other", "twice(x)", [F8], [F8], inner), [x], [F8])
        assert e.ins == e.outs == "mine"
        return [x]

    assert run(body, [F8], np.ones(8, np.float32))[0].tolist() == [16] * 8
    assert len(count) == 2


def test_a_body_that_raises_leaves_the_emitter_usable():
    def body(e, x):
        with pytest.raises(KeyError):
            e.function("key", "bad", [F8], [F8], lambda e, a: [{}["a"]])
        return [x]

    with pytest.raises(ZeroDivisionError):
        xla.build("f", [F8], lambda e, x: [1 // 0])
    xla.build("f", [F8], body)
    assert run(lambda e, x: [x], [F8], np.ones(8, np.float32))[0].tolist() == [1] * 8


def test_lines_reach_the_program():
    def body(e, x):
        e.place = e.location("/home/me/model.py", 41, "model")
        return [e.op("stablehlo.sine", [x], [F8])]

    program = xla.compile(xla.build("f", [F8], body), out_avals=[F8])
    assert "/home/me/model.py" in program.as_text() and 'op_name="model"' in program.as_text()


def test_donation_is_in_the_module():
    text = xla.module_text(xla.build("f", [F8] * 3, lambda e, *a: list(a), donated=[0, 1], aliases={1: 2}))
    assert text.count("jax.buffer_donor = true") == 1 and text.count("tf.aliasing_output = 2 : i32") == 1


def test_invalid_modules_are_clear_errors():
    wrong = xla.build("wrong", [F8], lambda e, x: [e.op("stablehlo.add", [x, e.constant(np.float32(1))], [F8])])
    with pytest.raises(CompileError, match=r"stablehlo\.add"):
        xla.verify(wrong)
    with pytest.raises(CompileError, match=r"stablehlo\.add"):
        xla.compile(wrong, out_avals=[F8], name="wrong")
    with pytest.raises(DtypeError, match="no element type for NumPy dtype"):
        xla.build("f", [], lambda e: [e.constant(np.longdouble(1))])


def test_names_are_made_fit():
    assert "module @jit_a_b_" in xla.module_text(xla.build("jit(a b)", [F8], lambda e, x: [x]))


def test_threads_build_and_compile_together():
    found = []

    def work(i):
        def body(e, x):
            for _ in range(50):
                x = e.op("stablehlo.add", [x, e.full(i, F8)], [F8])
            return [x]

        found.append((i, run(body, [F8], np.zeros(8, np.float32))[0][0]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [(i, 50 * i) for i in range(8)]
