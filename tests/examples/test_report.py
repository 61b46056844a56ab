"""Tables, histograms and drawings."""

import io

import numpy as np
import pytest

from functorch_like.examples.report import Report, drawing


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def written(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    report = Report(io.StringIO())
    return report, lambda: report.stream.getvalue().splitlines()


def test_table(written):
    report, lines = written
    report.table(("", "trace", "run"), [("step", "10 ms", "1 s"), ("a longer one", "9 us", "12 s")])
    assert lines() == [
        "              trace   run",
        "step          10 ms   1 s",
        "a longer one   9 us  12 s",
    ]


def test_histogram_counts_everything(written):
    report, lines = written
    values = np.array([0.0, 1e-30, 0.05, 0.5, 0.5, 7.0])
    report.histogram(values)
    assert sum(int(line.split()[3]) for line in lines()) == len(values)
    assert max(map(len, lines())) <= 40


def test_paragraphs_are_filled(written):
    report, lines = written
    report.say("word " * 50)
    assert 30 < max(map(len, lines())) <= 40


def test_as_many_images_as_fit(written):
    report, lines = written
    report.images(np.ones((5, 8, 8, 1)), [("one", "two")] * 5)
    assert len(lines()) == 10
    assert lines()[0] == "@" * 16 + "    " + "@" * 16


def test_ink():
    assert drawing(np.array([[0.0, 1.0], [-5.0, 9.0]])) == ["  @@", "  @@"]


@pytest.mark.parametrize(
    ("term", "no_color", "colored"),
    [("xterm", None, True), ("xterm", "", True), ("xterm", "1", False), ("dumb", None, False)],
)
def test_color(monkeypatch, term, no_color, colored):
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    out = Terminal()
    Report(out).title("Training", "grad(f)")
    assert ("\033[1mTraining" in out.getvalue()) is colored


def test_no_color_in_a_pipe(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = io.StringIO()
    Report(out).title("Training", "grad(f)")
    assert "\033" not in out.getvalue()
