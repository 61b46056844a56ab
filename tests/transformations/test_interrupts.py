"""Ctrl-C at chosen Python calls: it arrives as KeyboardInterrupt, and nothing is lost by it."""

# Other compile options: max-autotune compiles in ways of its own, and no program of these may be dropped either.

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends import xla
from functorch_like.backends.xla import executable
from functorch_like.interrupts import all_held, held

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the points are tried in forked processes")


@pytest.fixture(autouse=True)
def _interrupts_arrive():
    """Enable interrupts: background jobs of a shell, and their children, start with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


HARNESS = '''
import faulthandler, os, signal, sys, threading
import jaxlib
import numpy as np
import functorch_like as ft, functorch_like.numpy as fnp
from functorch_like import core
from functorch_like.backends import xla
from functorch_like.backends.xla import client, jax_import_stubs as stubs

faulthandler.enable()
ROOTS = os.path.dirname(jaxlib.__file__), *ft.__path__, *ft.backends.__path__, *ft.primitives.__path__
X = np.arange(9, dtype=np.float32).reshape(3, 3) / 10


def interrupted(point, call):
    """Call, with SIGINT at the point-th call or return from C in the files of this package and of jaxlib.

    Returns how many such points there are, and whether the interrupt arrived.
    """
    seen, arrived = 0, False

    def profile(frame, event, arg):
        nonlocal seen
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(ROOTS):
            seen += 1
            if seen == point:
                signal.raise_signal(signal.SIGINT)

    def dropped(unraisable):  # by Python, where the interrupt falls into the end of a generator
        nonlocal arrived
        arrived = arrived or unraisable.exc_type is KeyboardInterrupt

    hook, sys.unraisablehook = sys.unraisablehook, dropped
    sys.setprofile(profile)
    try:
        call()
    except KeyboardInterrupt:
        arrived = True
    finally:
        sys.setprofile(None)
        sys.unraisablehook = hook
    return seen, arrived


def free(lock):
    """Whether another thread can take it."""
    taken = []
    def take():
        taken.append(lock.acquire(blocking=False))
        if taken[0]:
            lock.release()
    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken[0]


SETTINGS = xla.settings()


def check_state():
    assert core.state.trace is core.EVALUATE and core.state.axes == () and core.state.source is None
    assert xla.settings() == SETTINGS and not core._STAGING.value
    assert "jax" not in sys.modules and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    locks = [client._lock, stubs.stubbed._lock]
    for name, lock in (("mlir", "lock"), ("lapack", "_lock")):
        module = sys.modules.get(f"functorch_like.backends.xla.{name}")
        locks += [getattr(module, lock)] if module else []
    assert all(map(free, locks)), locks
    if "jaxlib.mlir.ir" in sys.modules:
        assert sys.modules["jaxlib.mlir.ir"].Context.current is None


def check_works(f, wanted):
    for _ in range(12):
        np.testing.assert_allclose(f(X), wanted, rtol=1e-4)
    before = xla.counters.misses
    np.testing.assert_allclose(f(X), wanted, rtol=1e-4)
    assert xla.counters.misses == before, "each call goes to Python"
    assert np.asarray(fnp.tanh(X)[0, 0]) == 0


def points(total, count):
    return [round(1 + (total - 1) * i / (count - 1)) for i in range(count)]
'''

COLD = '''
def program(x):
    return fnp.sin(x) @ fnp.linalg.inv(x + 3 * fnp.eye(3))

WANTED = np.sin(X.astype(float)) @ np.linalg.inv(X.astype(float) + 3 * np.eye(3))
f = ft.jit(program)

def forked(run):
    """The exit status of a child that does `run`, or what killed it; and what it wrote to the pipe."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run(write)
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        text = file.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text

def count(write):
    os.write(write, str(interrupted(0, lambda: f(X))[0]).encode())

def attempt(point, write):
    arrived = interrupted(point, lambda: f(X))[1]
    assert arrived, "lost"
    check_state()
    check_works(f, WANTED)

total = int(forked(count)[1])
failed = [point for point in points(total, 21)[:-1] if forked(lambda write: attempt(point, write))[0] != 0]
print("failed at", failed, "of", total if failed else "all")
'''

WARM = """
def program(k):
    def program(x):
        return ft.lax.fori_loop(0, 3, lambda i, c: fnp.sin(c) + k, ft.grad(lambda x: (x * x).sum())(x))
    return program

def wanted(k):
    x = 2 * X.astype(float)
    for _ in range(3):
        x = np.sin(x) + k
    return x

ft.jit(program(0))(X)  # what it needs is imported
f = ft.jit(program(1))
total = interrupted(0, lambda: f(X))[0]
for k, point in enumerate(points(int(total * 0.95), 40), 2):
    f = ft.jit(program(k))
    arrived = interrupted(point, lambda: f(X))[1]
    assert arrived, (point, total)
    check_state()
    check_works(f, wanted(k))
print("all right")
"""

ENDING = """
import time
from functorch_like.backends.xla import executable
from functorch_like.compiler import tiers

def program(x):
    for _ in range(9):
        x = fnp.tanh(x * 1.01) + fnp.sin(x @ x)
    return x

started, built = threading.Event(), executable._built

def announced(*args):
    started.set()
    result = built(*args)
    time.sleep(0.3)  # Python has begun to end, however long that took
    return result

f = ft.jit(program)
if sys.argv[1] == "optimised":
    f(X)
    executable._built = announced
    for improvement in list(tiers._alive):
        improvement.start()
else:
    executable._built = announced
    if sys.argv[1] == "warmup":
        f.warmup((X,), wait=False)
    else:
        threading.Thread(target=f, args=(X,), daemon=sys.argv[1] == "daemon").start()
assert started.wait(60)
# Ctrl-C where Python waits for its threads: it no longer waits
threading._register_atexit(signal.raise_signal, signal.SIGINT)
"""

WAITING = """
from functorch_like.interrupts import awaited

def work():
    with awaited:
        started.set()
        threading.Event().wait(1.5 if sys.argv[1] == "SIGTERM" else 60)
        os.write(1, b"finished")

def stop(number, frame):
    raise SystemExit(3)

started = threading.Event()
threading.Thread(target=work, daemon=True).start()
started.wait()
if sys.argv[1] == "fork":
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        os._exit(0)
else:
    signal.signal(signal.SIGTERM, stop)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), getattr(signal, sys.argv[1])))
    timer.daemon = True
    timer.start()
"""


def run(text):
    done = started(text)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip(), done.stderr


def started(text, *args):
    return subprocess.run(
        [sys.executable, "-P", "-c", HARNESS + textwrap.dedent(text), *args],
        capture_output=True,
        text=True,
        env={**os.environ, "FT_CACHE": "0", "FT_PLATFORM": "cpu"},
        timeout=300,
    )


def test_interrupts_of_the_first_compile_of_a_process():
    """The first compilation imports MLIR, registers dialects, and starts XLA and LAPACK."""
    out, error = run(COLD)
    assert out == "failed at [] of all", error


def test_interrupts_of_later_compiles():
    assert run(WARM)[0] == "all right"


class Stopped(Exception):
    """Exception that a signal handler raises."""


def stop(number, frame):
    raise Stopped(number)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGALRM", "SIGUSR1"])
def test_a_program_that_was_compiled_meanwhile_is_kept(name, monkeypatch):
    """XLA 0.10 crashes some time after its caller has abandoned a compilation."""
    compile, number = executable._built, getattr(signal, name)

    def built(*args):
        signal.raise_signal(number)
        return compile(*args)

    f = ft.jit(lambda x: fnp.sin(x) * 1.25 - 3)
    x = np.arange(7, dtype=np.float32)
    previous = signal.signal(number, stop)
    with ft.backends.cache.flags(enabled=False):
        monkeypatch.setattr(executable, "_built", built)
        try:
            with pytest.raises(Stopped):
                f(x)
            assert signal.getsignal(number) is stop
        finally:
            signal.signal(number, previous)
        before = xla.counters.compiles
        np.testing.assert_allclose(f(x), np.sin(x.astype(float)) * 1.25 - 3, rtol=1e-5)
        assert xla.counters.compiles == before


@pytest.mark.parametrize(
    "use",
    [
        lambda x: fnp.cbrt(x),
        lambda x: fnp.linalg.norm(x),
        lambda x: ft.jit(lambda x: fnp.sin(x) * 2.25 - 3).lower(x).compile(),
        lambda x: ft.jit(lambda x: fnp.sin(x) * 3.25 - 3, mode="max-autotune")(x),
    ],
)
def test_no_program_is_dropped_just_after_it_was_compiled(use, monkeypatch):
    """XLA has crashed when an interrupt dropped a program just after its compilation."""
    compile, made = executable._built, []

    def built(*args):
        signal.raise_signal(signal.SIGINT)
        program = compile(*args)
        made.append(program.fingerprint)
        return program

    def alive():
        gc.collect()
        return [p.fingerprint for p in ft.devices()[0].client.live_executables()]

    x = np.arange(37, dtype=np.float32)
    with ft.backends.cache.flags(enabled=False):
        monkeypatch.setattr(executable, "_built", built)
        with pytest.raises(KeyboardInterrupt):
            use(x)
        assert made and made[-1] in alive()
        monkeypatch.undo()
        use(x)  # and the next attempt succeeds
    ft.clear_caches()
    assert made[-1] not in alive()


@pytest.mark.parametrize("how", ["optimised", "warmup", "thread", "daemon"])
def test_a_process_that_ends_waits_for_compiles_in_threads(how):
    """Without the wait, XLA returned the result to a thread that Python had ended, which aborted the process."""
    done = started(ENDING, how)
    assert done.returncode == 0, done.stderr
    assert "KeyboardInterrupt" in done.stderr and "Fatal" not in done.stderr


def test_ctrl_c_ends_that_wait():
    done = started(WAITING, "SIGINT")
    assert done.returncode == -signal.SIGINT, done.stderr


def test_a_handler_that_raises_does_not_end_that_wait():
    done = started(WAITING, "SIGTERM")
    assert done.stdout == "finished" and done.returncode >= 0, done.stderr


def test_a_forked_process_waits_for_no_thread_of_its_parent():
    done = started(WAITING, "fork")
    assert done.returncode == 0, done.stderr


def test_an_interrupt_is_held_until_the_outermost_block_ends():
    done = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        with held:
            with held:
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")
        done.append("after")
    assert done == ["inner", "outer"] and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_each_signal_that_was_held_is_delivered():
    done, numbers = [], (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)

    def handle(number, frame):
        done.append(number)
        raise Stopped(number)

    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        with pytest.raises(Stopped), all_held:  # noqa: PT012
            for number in numbers:
                signal.raise_signal(number)
            assert done == []
        assert done == list(numbers)
        assert all(signal.getsignal(number) is handle for number in numbers)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_handler_that_raises_while_handlers_are_given_back(monkeypatch):
    """Setting a handler runs the handlers of signals that have arrived."""
    before = signal.signal(signal.SIGTERM, stop)
    set_handler = signal.signal

    def interrupted(number, handler):
        if number == signal.SIGTERM and handler is stop:
            monkeypatch.undo()
            signal.raise_signal(signal.SIGINT)
        return set_handler(number, handler)

    try:
        with pytest.raises(KeyboardInterrupt), all_held:
            monkeypatch.setattr(signal, "signal", interrupted)
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGTERM)
        with all_held:
            pass
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_is_raised_in_a_block_is_not_lost_to_an_interrupt():
    with pytest.raises(KeyboardInterrupt) as caught, held:  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        raise ValueError("first")
    assert isinstance(caught.value.__context__, ValueError)


def test_the_handler_of_the_user_gets_the_interrupt(monkeypatch):
    got = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: got.append(number))
    try:
        with held:
            signal.raise_signal(signal.SIGINT)
            assert got == []
        assert got == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_handler_that_is_no_function_stays(handler):
    previous = signal.signal(signal.SIGINT, handler)
    try:
        with held:
            assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, previous)


def test_other_threads_hold_nothing():
    seen = []

    def run():
        with held:
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
