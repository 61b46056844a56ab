"""Progress lines: their text, the streams they are written to, and that loops give the same results without them."""

import io
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, status_line
from functorch_like.debug import progress as progress_module
from functorch_like.errors import ArgumentError


class Terminal(io.StringIO):
    """A terminal that records what is written to it."""

    def isatty(self):
        return True

    def lines(self):
        """Return all texts that were shown, in order."""
        return [text.rstrip() for text in re.split(r"[\r\n]", self.getvalue()) if text.strip()]

    def screen(self):
        """Return the rows that are shown at the end."""
        rows = [""]
        for part in re.split(r"([\r\n])", self.getvalue()):
            if part == "\n":
                rows.append("")
            elif part != "\r":
                rows[-1] = part + rows[-1][len(part) :]
        return [row.rstrip() for row in rows]


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.delenv("FT_PROGRESS", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress_module, "REDRAW", 0.0)
    stream = Terminal()
    monkeypatch.setattr(status_line, "stream", lambda: stream)  # pytest changes sys.stderr
    return stream


def counts(lines):
    """Return the step counts in `lines`; on a busy machine, lines about compilations may stand between them."""
    found = [re.search(r"(\d+)(/\d+)? \[", text) for text in lines]
    return [int(match[1]) for match in found if match]


# --------------------------------------------------------------------------------------------------------------- loops
def test_a_loop_in_python(terminal):
    assert list(ft.progress(range(4), label="rows")) == [0, 1, 2, 3]
    lines = terminal.lines()
    assert counts(lines) == [1, 2, 3, 4, 4]
    assert lines[1].startswith("rows  50% ############............ 2/4 [")
    assert terminal.screen()[-1] == "" and terminal.screen()[-2].startswith("rows 100%")
    assert len(ft.progress([1, 2])) == 2 and len(ft.progress(iter(()), 7)) == 7


def test_a_loop_of_unknown_length(terminal):
    assert list(ft.progress(x for x in "abc")) == ["a", "b", "c"]
    assert counts(terminal.lines()) == [1, 2, 3, 3]
    assert "%" not in terminal.getvalue()


def test_a_loop_that_breaks_leaves_its_line(terminal):
    for k in ft.progress(range(10)):
        if k == 3:
            break
    assert terminal.screen()[-2].split(" [")[0].endswith("3/10")


X = fnp.asarray(np.linspace(0, 1, 20), "float32")


def scanned(xs, reverse=False):
    return lax.scan(lambda c, x: (fnp.sin(c) + x, c * x), 0.5, xs, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("transform", ["eager", "jit", "grad", "vmap", "disable_jit"])
def test_a_scan_computes_the_same_and_counts_once(terminal, transform, reverse):
    run = {
        "eager": lambda f: f(X),
        "disable_jit": lambda f: f(X),
        "jit": lambda f: ft.jit(f)(X),
        "grad": lambda f: ft.grad(lambda x: f(x)[0])(X),
        "vmap": lambda f: ft.vmap(f)(fnp.stack([X, X + 1])),
    }[transform]
    want = run(lambda x: scanned(x, reverse))
    with ft.disable_jit(transform == "disable_jit"):
        got = run(lambda x: scanned(ft.progress(x, every=5), reverse))
    ft.effects_barrier()
    for a, b in zip(ft.tree.leaves(got), ft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert counts(terminal.lines()) == [0, 5, 10, 15, 20]


def test_a_program_that_runs_again_begins_again(terminal):
    f = ft.jit(lambda x: scanned(ft.progress(x, every=10))[0])
    f(X), f(X)
    ft.effects_barrier()
    assert counts(terminal.lines()) == [0, 10, 20] * 2


def test_scans_without_slices_and_with_trees(terminal):
    carry, _ = lax.scan(lambda c, x: (c + 1, None), 0, ft.progress(None, 6, every=3))
    total, _ = lax.scan(lambda c, x: (c + x["a"] * x["b"][0], None), 0.0, ft.progress({"a": X, "b": (X,)}))
    again, _ = lax.scan(lambda c, x: (c + 1, None), 0, ft.progress(None, 3), length=3)
    ft.effects_barrier()
    assert (int(carry), int(again)) == (6, 3)
    np.testing.assert_allclose(total, np.sum(np.asarray(X, "float64") ** 2), rtol=1e-6)
    with pytest.raises(ft.errors.ShapeError):
        lax.scan(lambda c, x: (c, None), 0, ft.progress(X), length=3)


@pytest.mark.parametrize("traced", [False, True])
def test_a_fori_loop(terminal, traced):
    body = ft.progress(lambda i, c: c + i, 12, every=4, start=2, label="sum")
    f = (lambda n: lax.fori_loop(2, n, body, 0)) if not traced else ft.jit(lambda n: lax.fori_loop(2, n, body, 0))
    assert int(f(12)) == sum(range(2, 12))
    ft.effects_barrier()
    assert counts(terminal.lines()) == [0, 4, 8, 10]
    assert terminal.lines()[-1].startswith("sum 100%")


def test_about_fifty_reports_of_a_long_loop(terminal):
    lax.scan(lambda c, x: (c + x, None), 0, ft.progress(fnp.arange(1000)))
    ft.effects_barrier()
    assert 40 < len(terminal.lines()) < 60


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ft.progress(lambda i, c: c), "needs the number of steps"),
        (lambda: ft.progress(None), "got None"),
        (lambda: ft.progress(5), "got 5"),
        (lambda: ft.progress([], total=-1), "total=-1"),
        (lambda: ft.progress([], every=0), "every=0"),
    ],
)
def test_errors(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


def test_times():
    meter = progress_module.Meter("x", 100)
    assert meter.line(25, 5.0) == "x  25% ######.................. 25/100 [5.0 s < 15.0 s, 5/s]"
    assert meter.line(0, 0.0).endswith("0/100 [0.0 s < ?, 0/s]")
    assert progress_module.Meter("", 3600).line(100, 6000.0).endswith("[1:40:00 < 58:20:00, 60 s each]")
    assert [progress_module.duration(s) for s in (0, 59.94, 60, 3599.6)] == ["0.0 s", "59.9 s", "1:00", "1:00:00"]


# ------------------------------------------------------------------------------------------------------------ the line
def test_nothing_is_written_to_logs(monkeypatch, capfd):
    monkeypatch.delenv("FT_PROGRESS", raising=False)
    list(ft.progress(range(3)))
    ft.jit(lambda x: scanned(ft.progress(x)))(X)
    ft.effects_barrier()
    assert capfd.readouterr() == ("", "")


def test_where_a_line_is_shown(monkeypatch, terminal):
    assert status_line.is_shown()
    monkeypatch.setenv("TERM", "dumb")
    assert not status_line.is_shown()
    monkeypatch.setenv("FT_PROGRESS", "1")
    assert status_line.is_shown()
    monkeypatch.setenv("FT_PROGRESS", "0")
    monkeypatch.setenv("TERM", "xterm")
    assert not status_line.is_shown()
    monkeypatch.delenv("FT_PROGRESS")
    monkeypatch.setattr(status_line, "stream", type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"}))
    assert status_line.is_shown()
    monkeypatch.setattr(status_line, "stream", lambda: None)
    assert not status_line.is_shown()


def test_a_shorter_line_covers_a_longer_one(terminal):
    status_line.show("a long line")
    status_line.show("short")
    assert terminal.screen() == ["short"]
    status_line.clear()
    assert terminal.screen() == [""]
    status_line.show("x" * 500)
    assert len(terminal.screen()[-1]) < 500
    status_line.clear()
    terminal.close()
    status_line.show("closed")  # no error
    status_line.clear()


# ------------------------------------------------------------------------------------------------------------- stages
@pytest.fixture
def at_once(terminal, monkeypatch):
    monkeypatch.setattr(status_line, "AFTER", 0.0)
    drawn, show = threading.Event(), status_line.show
    monkeypatch.setattr(status_line, "show", lambda text: (show(text), drawn.set()))
    return drawn


def test_a_stage_is_shown_while_it_lasts(terminal, at_once):
    with status_line.stage("compiling", "f", lambda: "3 equations"):
        assert at_once.wait(30)
        assert terminal.screen() == ["compiling f (3 equations): 0 s"]
    assert terminal.screen() == [""]


def test_the_innermost_stage_is_shown(terminal, at_once):
    with status_line.stage("compiling", "f", after=1e6), status_line.stage("lowering", "f"):
        assert at_once.wait(30)
        assert terminal.screen() == ["lowering f: 0 s"]
    assert terminal.screen() == [""]
    with pytest.raises(ZeroDivisionError), status_line.stage("tracing", "g"):
        raise ZeroDivisionError
    assert terminal.screen() == [""]


def test_a_stage_may_be_shown_from_its_beginning(terminal, at_once, monkeypatch):
    monkeypatch.setattr(status_line, "AFTER", 1e6)
    with status_line.stage("compiling", "training step", after=0.0):
        assert at_once.wait(30)
        assert terminal.screen() == ["compiling training step: 0 s"]
    assert terminal.screen() == [""]


def test_short_stages_are_not_shown(terminal, monkeypatch):
    monkeypatch.setattr(status_line, "AFTER", 1e6)
    f = ft.jit(lambda x: fnp.sin(x) * 1.25)
    f(X)
    assert terminal.getvalue() == ""


def test_jit_has_stages(terminal, at_once, monkeypatch):
    seen = []
    begin = status_line.stage.__init__
    monkeypatch.setattr(
        status_line.stage, "__init__", lambda self, *args: (seen.append((args[0], args[1])), begin(self, *args))[1]
    )

    def tripled(x):
        return x * 3.5

    ft.jit(tripled)(X)
    assert next(s for s in seen if s[1] == "tripled") == ("tracing", "tripled")
    assert ("compiling", "tripled") in seen
    assert terminal.screen() == [""]


def test_a_program_on_a_terminal_ends_quietly():
    program = """
import functorch_like as ft, functorch_like.numpy as fnp
from functorch_like import status_line
status_line.AFTER = 0.0
print(ft.jit(lambda x: x + 1)(1.0))
"""
    environment = {**os.environ, "FT_PROGRESS": "1", "FT_PLATFORM": "cpu"}
    ran = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, timeout=60, env=environment)
    assert (ran.returncode, ran.stdout) == (0, b"2.0\n")
    assert ran.stderr == b"" or ran.stderr.endswith(b"\r")
