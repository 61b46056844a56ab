import ml_dtypes
import numpy as np
import pytest

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import compile_options as options
from functorch_like.errors import ArgumentError, DonatedError

F8 = ShapedArray((8,), np.float32)


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    from functorch_like.backends.xla import cache

    monkeypatch.setattr(cache, "directory", lambda: None)


def test_execute(double, x):
    (y,) = double.execute([x])
    assert type(y) is xla.ArrayImpl and y.aval is F8 and not y._committed
    weak = ShapedArray((8,), np.float32, True)
    (y,) = double.execute([x], [weak], committed=True)
    assert y.aval is weak and y._committed and double.execute([x])[0].aval is F8


def test_donation(program, x):
    """The program takes the argument's memory; another use of the argument raises an error, in Python and from C++."""
    donating = program(lambda e, a: [e.op("stablehlo.add", [a, a], [F8])], donated=[0])
    (y,) = donating.execute([x])
    assert xla.is_deleted(x) and not xla.is_deleted(y)
    for use in (lambda: donating.execute([x]), lambda: xla.to_numpy(x)):
        with pytest.raises(DonatedError, match=r"f32\[8\] was donated"):
            use()
    f = xla.function("f", None, lambda a: (donating.execute([a])[0], donating.fastpath(xla.leaf_structure), False))
    z = f(f(y))
    assert xla.is_deleted(y) and xla.to_numpy(z).tolist() == (8 * np.arange(8)).tolist()
    with pytest.raises((DonatedError, ValueError, RuntimeError), match="donated"):
        f(y)
    host = np.ones(8, np.float32)
    f(host)
    f(host)
    assert host.tolist() == [1] * 8


def test_deleted_arguments(double, x):
    x.delete()
    with pytest.raises(DonatedError):
        double.execute([x])


@pytest.mark.parametrize(
    "args",
    [
        [],
        [np.ones(8, "f4"), np.ones(8, "f4")],
        [np.ones(4, "f4")],
        [np.ones(8, "i4")],
        [np.ones((2, 4), "f4")],
        [np.ones(4, "f8")],
    ],
    ids=["none", "two", "short", "dtype", "shape", "both"],
)
def test_wrong_arguments_raise(double, args):
    """TRAP: C++ compares sizes in bytes and nothing else."""
    with pytest.raises(ArgumentError, match=r"the program 'test' takes \(f32\[8\]\), got \("):
        double.execute(args)


def test_weak_arguments_are_taken(double):
    assert double.execute([xla.device_put(np.ones(8, np.float32), weak_type=True)])


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int64", "complex64", "bfloat16", "float8_e4m3fn", "int4", "float64"]
)
def test_arguments_of_every_kind_of_dtype(name):
    aval = ShapedArray((2, 3), getattr(ml_dtypes, name, name))
    program = xla.compile(xla.build("f", [aval], lambda e, a: [a]), out_avals=[aval])
    assert program.in_avals == [aval]
    assert xla.to_numpy(program.execute([np.ones(aval.shape, aval.dtype)])[0]).dtype == aval.dtype


def test_fastpath_drops_and_prepends(program, x):
    """`kept` has a flag for each constant, and then for each flat argument."""
    total = program(lambda e, a, b: [e.op("stablehlo.subtract", [a, b], [F8])], count=2)
    constant = xla.device_put(np.full(8, 10, np.float32))
    calls = []

    def miss(unused, b):
        calls.append(1)
        kept = [True, False, True]
        return total.execute([constant, b])[0], total.fastpath(xla.leaf_structure, None, kept, [constant]), False

    f = xla.function("f", None, miss)
    for _ in range(3):
        assert xla.to_numpy(f(3.0, x)).tolist() == (10 - np.arange(8)).tolist()
    assert len(calls) == 1


def test_pytrees_in_and_out(program, x):
    both = program(lambda e, a, b: [e.op("stablehlo.add", [a, b], [F8]), a], count=2, avals=[F8, F8])
    tree = xla.structure({"sum": 0, "rest": (0, None)})
    calls = []

    def miss(d):
        calls.append(1)
        outs = both.execute(xla.flatten(d)[0])
        return tree.unflatten(outs[::-1]), both.fastpath(tree), False

    f = xla.function("f", None, miss)
    for _ in range(2):
        found = f({"b": [x, None], "a": x})
        assert set(found) == {"sum", "rest"} and found["rest"][1] is None
    assert len(calls) == 1


def test_committed_results(double, x):
    f = xla.function("f", None, lambda a: (0, double.fastpath(xla.leaf_structure, committed=True), False))
    f(x)
    assert f(x)._committed


def test_looking_inside(double):
    assert double.cost_analysis()["flops"] == 8
    memory = double.memory_analysis()
    assert memory["argument"] == memory["output"] == 32 and set(memory) >= {"argument", "output", "temp", "alias"}
    assert double.as_text().startswith("HloModule test") and double.device is xla.default_device()
    assert len(double.serialize()) > 100 and repr(double) == f"Executable(test, {double.device})"


def test_bad_options_are_clear_errors(program):
    module = xla.build("f", [F8], lambda e, a: [a])
    with pytest.raises(ArgumentError, match="'xla_cpu_enable_fast_mth'; did you mean 'xla_cpu_enable_fast_math'"):
        xla.compile(module, out_avals=[F8], options={"xla_cpu_enable_fast_mth": True}, name="f")
    with pytest.raises(ArgumentError, match="xla_cpu_prefer_vector_width is given 'wide', which is not of type int"):
        xla.compile(module, out_avals=[F8], options={"xla_cpu_prefer_vector_width": "wide"}, name="f")
    assert xla.compile(module, out_avals=[F8], options={"xla_cpu_enable_fast_math": True})


def test_a_default_this_jaxlib_does_not_know_is_dropped(monkeypatch):
    monkeypatch.setitem(options._CPU, "xla_cpu_from_the_future", True)
    monkeypatch.setattr(options, "_refused", set())
    module = xla.build("f", [F8], lambda e, a: [a])
    before = xla.counters.compiles
    for _ in range(2):
        assert xla.compile(module, out_avals=[F8], device=xla.devices("cpu")[0])
    assert xla.counters.compiles == before + 2 and "xla_cpu_from_the_future" not in options.defaults("cpu")


def test_the_defaults_are_known_to_this_jaxlib(double):
    assert not options._refused


def test_same_module_twice(program):
    """A module stays usable after it was compiled."""
    module = xla.build("f", [F8], lambda e, a: [e.op("stablehlo.add", [a, a], [F8])])
    text = xla.module_text(module)
    for _ in range(2):
        xla.compile(module, out_avals=[F8])
    assert xla.module_text(module) == text
