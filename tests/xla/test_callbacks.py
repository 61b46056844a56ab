"""Python functions called by programs, and the package's checks of what C++ does not check."""

import sys
import threading
from contextlib import suppress

import numpy as np
import pytest

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import callbacks
from functorch_like.backends.xla.callbacks import HostCall, checked
from functorch_like.errors import DtypeError, ShapeError, UnsupportedError

VECTOR = ShapedArray((3,), np.float32)


def program(*funs, effects=(), name="calls"):
    """Compile a program that applies functions one after the other to its argument."""
    calls = []

    def body(e, x):
        for fun in funs:
            (x,) = e.callback(fun, [x], [VECTOR], effects)
        return [x]

    module = xla.build(name, [VECTOR], body, host_calls=calls)
    return xla.compile(module, out_avals=[VECTOR], name=name, host_calls=calls)


@pytest.mark.parametrize("effects", [(), ("unordered",), ("ordered",)])
def test_each_call_finds_its_function(effects):
    run = program(lambda x: [x + 1], lambda x: [x * 10], effects=effects)
    for _ in range(2):
        (out,) = run.execute([np.arange(3, dtype=np.float32)])
        np.testing.assert_array_equal(out, [10, 20, 30])
    assert run.calls_python and run.fastpath(xla.structure(0)) is None


def test_operands_are_copies_that_cannot_be_written_to():
    kept = []
    run = program(lambda x: (kept.append(x), [x * 2])[1])
    run.execute([np.ones(3, np.float32)])
    run.execute([np.full(3, 7, np.float32)])
    assert kept[0].tolist() == [1, 1, 1] and not kept[0].flags.writeable


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ([np.zeros(2, np.float32)], ShapeError),
        ([np.zeros(3, np.float64)], DtypeError),
        ([np.zeros(3, np.int32)], DtypeError),
        ([np.zeros((3, 1), np.float32)], ShapeError),
        ([], ValueError),
        ([np.zeros(3, np.float32)] * 2, ValueError),
        (None, TypeError),
        ([object()], ShapeError),
        (["text"], ShapeError),
    ],
)
def test_what_c_would_copy_blindly_is_refused(result, error):
    run = program(lambda x: result)
    with pytest.raises(error):
        run.execute([np.ones(3, np.float32)])


def test_results_of_any_layout_are_taken():
    run = program(lambda x: [np.arange(6, dtype=np.float32)[::2]])
    np.testing.assert_array_equal(run.execute([np.ones(3, np.float32)])[0], [0, 2, 4])
    run = program(lambda x: [np.arange(3, dtype=">f4")])
    np.testing.assert_array_equal(run.execute([np.ones(3, np.float32)])[0], [0, 1, 2])
    assert checked([3, True], [ShapedArray((), np.float32), ShapedArray((), np.int8)])[0].dtype == np.float32


def test_interruptions_pass():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        program(interrupted).execute([np.ones(3, np.float32)])


def test_uncollected_exceptions_are_few():
    call = HostCall(lambda: 1 / 0, [], False)
    for _ in range(200):
        with pytest.raises(RuntimeError, match="callback failure"):
            call()
    assert len(callbacks._failures) <= 64


def test_platforms_without_callbacks_say_so():
    assert callbacks.target("gpu") != callbacks.target("cpu")
    with pytest.raises(UnsupportedError, match="tpu"):
        callbacks.target("tpu")


def test_an_interrupt_at_the_end_of_a_call_leaves_no_lock_taken():
    """Later calls, in other threads too, still run."""
    run = program(lambda x: [x + 1])
    x = np.ones(3, np.float32)

    def at_return(frame, event, arg):
        if event == "return":
            raise KeyboardInterrupt
        return at_return

    def trace(frame, event, arg):
        return at_return if frame.f_code is threading.Condition.__enter__.__code__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(KeyboardInterrupt):
            run.execute([x])
    finally:
        sys.settrace(before)
    other = threading.Thread(target=run.execute, args=([x],), daemon=True)
    other.start()
    other.join(60)
    assert not other.is_alive()
