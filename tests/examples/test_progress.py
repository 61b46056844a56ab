"""The bar: on terminals wide and narrow, in pipes, and where Unicode cannot be written."""

import io
import os

import pytest

from functorch_like.examples import progress
from functorch_like.examples.progress import Progress, line


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


class AsciiTerminal(Terminal):
    encoding = "ascii"


def shown(text, columns):
    """What a terminal shows: each carriage return starts the line again."""
    lines = []
    for row in text.split("\n"):
        screen = ""
        for part in row.split("\r"):
            assert len(part) < columns, "a full last column wraps on some terminals"
            screen = part + screen[len(part) :]
        lines.append(screen.rstrip())
    return lines


def test_in_a_pipe_four_plain_lines():
    out = io.StringIO()
    with Progress("train", 200, out) as bar:
        for done in range(1, 201):
            bar.update(done, f"loss {done}")
    assert out.getvalue().splitlines() == [
        "train  25%  loss 50",
        "train  50%  loss 100",
        "train  75%  loss 150",
        "train 100%  loss 200",
    ]


def test_in_a_pipe_a_leap_over_milestones_is_one_line():
    out = io.StringIO()
    with Progress("train", 2, out) as bar:
        bar.update(1)
        bar.update(2)
    assert out.getvalue() == "train  50%\ntrain 100%\n"


@pytest.fixture(params=[1, 4, 12, 24, 40, 80, 300])
def columns(request, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress.shutil, "get_terminal_size", lambda **_: os.terminal_size((request.param, 24)))
    monkeypatch.setattr(progress, "REDRAW", 0.0)
    return request.param


def test_on_a_terminal_one_line_that_never_wraps(columns):
    out = Terminal()
    with Progress("train", 50, out) as bar:
        for done in range(1, 51):
            bar.update(done, f"loss {1 / done:.4f}" + "!" * (done % 3))
    *rows, last = shown(out.getvalue(), columns)
    assert last == "" and len(rows) == 1
    assert rows[0] == line("train", 50, 50, "loss 0.0200!!", columns - 1)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (60, "fit ███████████████░░░░░░░░░░░░░░░  50%  loss 0.1"),
        (31, "fit ██████░░░░░░  50%  loss 0.1"),
        (20, "fit  50%  loss 0.1"),
        (12, "fit  50%"),
        (3, "fit"),
        (0, ""),
    ],
)
def test_what_does_not_fit_goes(columns, text):
    assert line("fit", 5, 10, "loss 0.1", columns) == text


def test_full_only_at_the_end():
    assert line("fit", 999, 1000, "", 60).count("░") == 1
    assert " 99%" in line("fit", 999, 1000, "", 60)
    assert "░" not in line("fit", 1000, 1000, "", 60)


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
    assert out.getvalue().endswith("\n")


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
