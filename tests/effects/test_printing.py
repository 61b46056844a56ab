"""debug.print and debug.breakpoint: what appears, when, and what is refused."""

import bdb
import io
import sys

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import ArgumentError


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_fields(wrap, capsys):
    fmt = "{} {z:.1f} {y} {y[1]:.2f} {y.shape} {n:>3} {{}} {d[a]} {s!r}"

    def f(x):
        ft.debug.print(fmt, x, y=fnp.stack([x, x]), n=7, z=x, d={"a": x}, s="text")

    wrap(f)(fnp.asarray(2.5))
    assert capsys.readouterr().out == "2.5 2.5 [2.5 2.5] 2.50 (2,)   7 {} 2.5 'text'\n"


def test_vmap_prints_each_element(capsys):
    ft.vmap(lambda x, y: ft.debug.print("{} {}", x, y), (0, None))(fnp.arange(3), 9)
    assert capsys.readouterr().out == "0 9\n1 9\n2 9\n"


@pytest.mark.parametrize(
    ("slope", "x"),
    [
        (lambda f: ft.grad(ft.jit(f)), 3.0),
        (lambda f: ft.jit(ft.grad(f)), 3.0),
        (lambda f: ft.vmap(ft.grad(f)), fnp.asarray([3.0])),
    ],
    ids=["grad of jit", "jit of grad", "vmap of grad"],
)
def test_grad_prints_once_and_the_value_itself(slope, x, capsys):
    slope(lambda x: (ft.debug.print("{:.1f}", x), x * x)[1])(x)
    assert capsys.readouterr().out == "3.0\n"


def test_ordered_lines_keep_their_order(capsys):
    @ft.jit
    def f(x):
        for i in range(20):
            ft.debug.print("{} {}", i, x, ordered=True)
            x = fnp.sum(fnp.full((50,), x)) / 50
        return x

    f(1)
    assert capsys.readouterr().out.split("\n")[:-1] == [f"{i} {1 if not i else 1.0}" for i in range(20)]


def test_ordered_lines_under_vmap(capsys):
    def say(x):
        ft.debug.print("a{:.0f}", x, ordered=True)
        ft.debug.print("b{:.0f}", x, ordered=True)
        return x * x

    x = fnp.arange(3.0)
    slopes = lambda x: ft.grad(lambda x: fnp.sum(ft.vmap(say)(x)))(x)
    for g in (ft.vmap(say), ft.jit(ft.vmap(say)), ft.vmap(ft.jit(say)), ft.vmap(ft.grad(say)), slopes):
        ft.block_until_ready(g(x))
        ft.effects_barrier()
        assert capsys.readouterr().out.split() == ["a0", "a1", "a2", "b0", "b1", "b2"]
    odd = lambda x: lax.cond(x == 1, say, lambda x: x, x)
    ft.block_until_ready(ft.vmap(odd)(x))
    ft.effects_barrier()
    assert capsys.readouterr().out.split() == ["a1", "b1"]


def test_formats_are_checked_at_once():
    for wrong in (("{} {}", 1), ("{x}",), ("{",), ("nothing", 1), (3, 1), ("{0}", 1, 2)):
        with pytest.raises(ArgumentError):
            ft.debug.print(*wrong)
    with pytest.raises(ArgumentError, match="no field for y"):
        ft.debug.print("{x}", x=1, y=2)


# --------------------------------------------------------------------------------------------------------- breakpoint
def answer(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def stopping(scale):
    @ft.jit
    def inner(value):
        shifted = value + 1.0
        pair = {"twice": shifted * scale, "name": "a text"}
        ft.debug.breakpoint()
        return shifted * len(pair)

    return inner


def test_values_have_their_names(monkeypatch, capsys):
    answer(monkeypatch, "value - shifted\np pair['twice'].sum()\nl\nw\nnonsense\nh\nc\nnever read\n")
    assert stopping(2.0)(fnp.zeros(2)).tolist() == [2.0, 2.0]
    out = capsys.readouterr().out
    assert "in inner" in out and "value = f32[2] [0. 0.]" in out and "'a text'" in out
    assert "array([-1., -1.]" in out and "4.0" in out and "->" in out and "NameError" in out
    assert "test_values_have_their_names" in out and "never read" not in out


@pytest.mark.parametrize(
    "wrap", [lambda f: f, ft.jit, ft.vmap, lambda f: ft.grad(lambda x: f(x).sum())], ids=lambda w: ""
)
def test_the_end_of_input_goes_on(wrap, monkeypatch, capsys):
    answer(monkeypatch, "")
    wrap(stopping(2.0))(fnp.zeros(2))
    assert capsys.readouterr().out.count("breakpoint at") == (2 if wrap is ft.vmap else 1)


def test_no_input_at_all_goes_on(monkeypatch, capsys):
    stopping(2.0)(fnp.zeros(2))  # reading pytest's stdin is an error
    monkeypatch.setattr(sys, "stdin", None)
    stopping(2.0)(fnp.zeros(2))
    assert capsys.readouterr().out.count("breakpoint at") == 2


def test_an_open_pipe_without_a_writer_goes_on(monkeypatch, capsys):
    import os

    read, write = os.pipe()
    with open(read) as stdin, open(write, "w") as other:
        monkeypatch.setattr(sys, "stdin", stdin)
        stopping(2.0)(fnp.zeros(2))
        other.write("c\n")


def test_quit_stops_the_program(monkeypatch):
    answer(monkeypatch, "q\n")
    with pytest.raises(bdb.BdbQuit, match="in inner"):
        stopping(2.0)(fnp.zeros(2))


def test_frames_around_and_values_that_are_gone(monkeypatch, capsys):
    kept = []
    ft.jit(lambda x: kept.append(x) or x)(1.0)

    def outer(outside):
        leaked = kept[0]  # noqa: F841
        return stopping(outside)(fnp.zeros(()))

    answer(monkeypatch, "u\nv\nd\nvalue\nc\n")
    ft.jit(outer)(np.float32(3.0))
    out = capsys.readouterr().out
    assert "outside = f32[] 3." in out and "leaked = '<gone>'" in out and "array(0., dtype=float32)" in out


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_log_goes_to_pythons_logging(wrap, caplog):
    with caplog.at_level("INFO", "functorch_like"):
        wrap(lambda x: ft.debug.log("loss {:.1f} {n}", x, n=2))(fnp.asarray(2.5))
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [("INFO", "loss 2.5 2")]
    with pytest.raises(ArgumentError, match="no value"):
        ft.debug.log("{} {}", 1)
