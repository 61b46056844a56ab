"""The bar: on terminals wide and narrow, in pipes, and where Unicode cannot be written."""

import io
import itertools
import os
import re
import sys

import pytest

from functorch_like.examples import progress
from functorch_like.examples.progress import Progress
from functorch_like.examples.report import Report


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


class AsciiTerminal(Terminal):
    encoding = "ascii"


def shown(text, columns):
    """Return the lines that a terminal shows: each carriage return starts the line again."""
    lines = []
    for row in text.split("\n"):
        screen = ""
        for part in row.split("\r"):
            assert len(part) < columns, "a full last column wraps on some terminals"
            screen = part + screen[len(part) :]
        lines.append(screen.rstrip())
    return lines


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock by one that advances by a second at each reading."""
    ticks = itertools.count()
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(ticks)))


def test_in_a_pipe_four_plain_lines_with_the_time_left():
    out = io.StringIO()
    with Progress("train", 200, out) as bar:
        for done in range(1, 201):
            bar.update(done, f"loss {done}")
    assert [re.sub(r"[\d.]+ s left", "left", line) for line in out.getvalue().splitlines()] == [
        "train  25%  loss 50  left",
        "train  50%  loss 100  left",
        "train  75%  loss 150  left",
        "train 100%  loss 200",
    ]


def test_the_time_left_is_that_of_the_steps_before(clock):
    out = io.StringIO()
    with Progress("train", 3, out) as bar:
        bar.update(1)  # 1 s after the beginning
        bar.update(2)
        bar.update(3)
    assert out.getvalue().splitlines() == ["train  33%  2.0 s left", "train  66%  1.0 s left", "train 100%"]


def test_in_a_pipe_a_leap_over_milestones_is_one_line():
    out = io.StringIO()
    with Progress("train", 2, out) as bar:
        bar.update(1)
        bar.update(2)
    assert [line[:10] for line in out.getvalue().splitlines()] == ["train  50%", "train 100%"]


@pytest.fixture(params=[1, 4, 12, 24, 40, 80, 300])
def columns(request, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress.shutil, "get_terminal_size", lambda **_: os.terminal_size((request.param, 24)))
    monkeypatch.setattr(progress, "REDRAW", 0.0)
    return request.param


@pytest.fixture
def without_rich(monkeypatch):
    for name in ("rich", "rich.console", "rich.table", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)


def test_without_rich_one_line_that_never_wraps(columns, without_rich):
    out = Terminal()
    with Progress("train", 50, out) as bar:
        for done in range(1, 51):
            bar.update(done, f"loss {1 / done:.4f}" + "!" * (done % 3))
    *rows, last = shown(out.getvalue(), columns)
    assert last == "" and len(rows) == 1
    assert rows[0].startswith(f"train 100% {'#' * 24} 50/50 ["[: columns - 1].rstrip())
    assert columns < 300 or rows[0].endswith("loss 0.0200!!")


def test_without_rich_tables_are_plain(monkeypatch, without_rich):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    Report(out).table(("", "run"), [("step", "1 s")])
    assert "step  1 s" in out.getvalue()


def test_rich_draws_a_bar(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    out = Terminal()
    with Progress("train", 3, out) as bar:
        for done in (1, 2, 3):
            bar.update(done, f"loss {done}")
    text = re.sub(r"\033\[[\d;?]*[A-Za-z]", "", out.getvalue())
    assert re.fullmatch(r"train ━{24} 100% \d:\d\d:\d\d loss 3 *\n", text.split("\r")[-1])


def test_rich_draws_tables(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    Report(out).table(("", "run"), [("step", "1 s"), ("a longer one", "12 s")])
    assert "─" in out.getvalue()
    assert "a longer one   12 s" in out.getvalue()


def test_without_unicode(columns):
    out = AsciiTerminal()
    with Progress("train", 2, out) as bar:
        bar.update(1)
        bar.update(2)
    assert out.getvalue().isascii()


def test_the_line_is_ended_when_the_work_fails(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()

    def work():
        with Progress("train", 2, out) as bar:
            bar.update(1)
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        work()
    assert out.getvalue().removesuffix("\033[?25h").endswith("\n")  # shows the cursor again


def test_a_dumb_terminal_is_a_pipe(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    with Progress("train", 1, out) as bar:
        bar.update(1)
    assert out.getvalue() == "train 100%\n"


def test_nothing_to_do():
    out = io.StringIO()
    with Progress("train", 0, out):
        pass
    assert out.getvalue() == ""
