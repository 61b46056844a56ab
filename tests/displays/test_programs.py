"""Displays of jaxprs, compiled functions, explanations, profiles and settings."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from support.markup import fits, page
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends
from functorch_like.backends.xla import reporting
from functorch_like.backends.xla.profiling import Operation
from functorch_like.ir.jaxpr import display
from functorch_like.markup import terminal

X = fnp.ones((4, 4))


def loss(x):
    inner = ft.jit(lambda y: fnp.tanh(y) * 2)
    return fnp.sum(inner(x @ x.T))


def jaxpr(fun, *args):
    return ft.make_jaxpr(fun)(*(args or (X,)))


# -------------------------------------------------------------------------------------------------- jaxprs
def test_a_jaxpr_folds_and_tells_the_lines():
    made = jaxpr(ft.grad(loss))
    found = page(made)
    assert found.tags.count("details") == 2 and "dot_general" in found.text
    assert "test_programs.py:" in found.text and "return" in found.text
    assert str(made) == "\n\n".join(map(str, ft.make_jaxpr(ft.grad(loss))(X).__str__().split("\n\n")))


def test_text_fits_and_is_the_whole_program():
    made = jaxpr(ft.hessian(loss))
    text = display(made).layout()
    assert fits(text)
    words = lambda text: re.sub(r"#.*", "", text).split()
    full, shown = words(str(made)), words(text)
    assert [w for w in shown if w == "="] == [w for w in full if w == "="] and shown.count("def") == full.count("def")
    assert not re.search(r":$", re.sub(r"\):$", "", text, flags=re.M), re.M)  # a name and its type stay together
    coloured = display(made).layout(terminal.ansi)
    assert "\x1b[" in coloured and re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text


def test_long_jaxprs_are_cut():
    def long(x):
        for _ in range(400):
            x = fnp.sin(x)
        return x

    found = page(jaxpr(long))
    assert "... 100 more equations" in found.text and "400 equations" in found.text
    last = str(jaxpr(long)).rsplit("return ", 1)[1]
    assert found.text.rstrip().endswith(f"return {last}")  # names are those of the whole text


def test_very_many_inputs_operands_and_results():
    many = [fnp.ones(()) for _ in range(3000)]
    made = jaxpr(lambda *xs: ft.jit(lambda *ys: [fnp.stack(ys), *ys])(*xs), *many)
    shown = display(made)
    assert fits(shown.layout()) and "... 2970 more" in shown.layout() and len(page(shown).text) < 40_000
    picture = ft.inspect.graph(made)
    assert "2970 more inputs" in str(picture) and len(picture.svg) < 120_000
    assert fits(str(picture)) and page(ft.inspect.diff(made, made))


def test_names_in_jaxprs_are_escaped():
    def f(x):
        with ft.named_scope("<img src=x onerror=alert(1)>"):
            return fnp.sin(x)

    f.__name__ = "<script>"
    found = page(jaxpr(f))
    assert "<img" in found.text and "<script>" in found.text


# --------------------------------------------------------------------------------------------- differences
def test_equal_jaxprs():
    found = ft.inspect.diff(jaxpr(loss), jaxpr(loss))
    assert found.is_equal and str(found) == "the jaxprs are equal"
    assert "equal" in page(found).text


def test_one_changed_equation_is_one_difference():
    first, second = (jaxpr(lambda x, f=f: fnp.sum(fnp.exp(f(x)) * 2)) for f in (fnp.sin, fnp.cos))
    found = ft.inspect.diff(first, second)
    assert (found.is_equal, found.removed, found.added) == (False, 1, 1)
    signs = [line for line in str(found).split("\n") if line[:2] in ("- ", "+ ")]
    assert ["sin(" in signs[0], "cos(" in signs[1]] == [True, True] and fits(str(found))
    assert {"ins", "del"} <= set(page(found).tags)


def test_names_of_variables_are_no_difference():
    """The second has an extra equation at its beginning, so all later variables have other names."""
    first = jaxpr(lambda x: fnp.sin(fnp.cos(x)) @ x)
    second = jaxpr(lambda x: (fnp.tanh(x), fnp.sin(fnp.cos(x)) @ x)[1])
    found = ft.inspect.diff(first, second)
    assert (found.removed, found.added) == (0, 1)


def test_other_operands_results_constants_and_types_are_differences():
    y = fnp.ones((4, 4))
    for first, second in (
        (lambda x, y: fnp.subtract(x, y), lambda x, y: fnp.subtract(y, x)),
        (lambda x, y: (x, y), lambda x, y: (y, x)),
        (lambda x, y: x * 2, lambda x, y: x * 3),
        (lambda x, y: fnp.sum(x, 0), lambda x, y: fnp.sum(x, 1)),
        (lambda x, y: ft.jit(fnp.sin)(x), lambda x, y: ft.jit(fnp.cos)(x)),
    ):
        found = ft.inspect.diff(jaxpr(first, X, y), jaxpr(second, X, y))
        assert not found.is_equal and fits(str(found)) and page(found)
    found = ft.inspect.diff(jaxpr(loss, X), jaxpr(loss, fnp.ones((3, 3))))
    assert "- (a: f32[4,4])" in str(found) and "+ (a: f32[3,3])" in str(found)


def test_what_is_no_jaxpr():
    for call in (lambda: ft.inspect.diff(loss, loss), lambda: ft.inspect.graph(loss)):
        says(refusal(call).remedy, "ft.make_jaxpr")


# -------------------------------------------------------------------------------------------------- graphs
def test_a_graph_has_a_box_for_each_equation_and_an_arrow_for_each_operand():
    made = jaxpr(lambda x: fnp.sin(x) * fnp.cos(x))
    found = ft.inspect.graph(made)
    picture = ET.fromstring(found.svg)
    names = [e.text for e in picture.iter() if e.tag.endswith("text")]
    assert sorted(names) == sorted(["a: f32[4,4]", "sin", "cos", "mul", "result"])
    assert sum(e.tag.endswith("path") for e in picture.iter()) == 5
    assert found.dot.count("->") == 5 and found.dot.startswith("digraph")
    assert page(found).tags.count("rect") == 5
    assert str(found).split("\n")[1:] == ["  0  a: f32[4,4]", "  1  sin, cos", "  2  mul"]


def test_boxes_of_a_graph_do_not_overlap():
    found = ft.inspect.graph(jaxpr(ft.grad(lambda x: fnp.sum(fnp.sin(x) * fnp.cos(x) @ fnp.tanh(x) / (1 + x**2)))))
    boxes = {}
    width = float(ET.fromstring(found.svg).get("width"))
    for e in ET.fromstring(found.svg).iter():
        if e.tag.endswith("rect"):
            boxes.setdefault(e.get("y"), []).append((float(e.get("x")), float(e.get("width"))))
    for row in boxes.values():
        row.sort()
        assert all(x + w < u for (x, w), (u, _) in pairwise(row))
        assert row[0][0] >= 0 and sum(row[-1]) <= width
    assert len(boxes) > 5


def test_large_graphs_empty_graphs_and_names():
    def long(x):
        for _ in range(200):
            x = fnp.sin(x)
        return x

    assert "of which the first 150 are shown" in str(ft.inspect.graph(jaxpr(long)))
    assert page(ft.inspect.graph(jaxpr(lambda x: 3)))
    f = lambda x: fnp.sin(fnp.cos(x))
    f.__name__ = '"<script>'
    found = ft.inspect.graph(jaxpr(lambda x: f(ft.jit(f)(x))))
    ET.fromstring(found.svg)
    assert '\\"<script>' in found.dot


# -------------------------------------------------------------------------------------------------- stages
def test_stages_tell_time_cost_and_memory():
    traced = ft.jit(loss).trace(X)
    lowered = traced.lower()
    compiled = lowered.compile()
    for stage, count, word in ((traced, 1, "traced"), (lowered, 2, "lowered"), (compiled, 3, "compiled")):
        found = page(stage)
        assert repr(stage).startswith(f"{word} loss(f32[4,4]) -> f32[]") and fits(repr(stage))
        assert found.tags.count("span") > count and "jaxpr" in found.text
        assert sum(name in repr(stage) for name in ("tracing", "lowering", "compiling")) == count
    assert "operations" in repr(compiled) and "arguments 64 bytes" in page(compiled).text
    assert str(traced) == traced.as_text()


def test_stages_on_a_platform_without_estimates(monkeypatch):
    compiled = ft.jit(loss).lower(X).compile()

    def refused():
        raise RuntimeError("<not> here")

    class Executable:
        cost_analysis = memory_analysis = staticmethod(refused)

    monkeypatch.setattr(compiled, "executable", Executable())
    assert "unknown: <not> here" in repr(compiled) and "unknown: <not> here" in page(compiled).text


# ------------------------------------------------------------------------------------- explain and profile
def test_an_explanation():
    f = ft.jit(loss)
    first, again = ft.explain(f)(X), ft.explain(f)(X)
    assert "traced" in page(first).text and "first call" in page(first).text and fits(str(first))
    assert "nothing was traced" in page(again).text and "nothing was traced" in str(again)
    text = str(ft.explain(ft.jit(lambda **arguments: fnp.sin(arguments["x" * 200])))(**{"x" * 200: X}))
    assert all(len(line) <= 100 or " " not in line.strip() for line in text.split("\n"))


def test_a_plan():
    mesh = ft.sharding.AbstractMesh((4,), ("data",))
    where = ft.sharding.NamedSharding(mesh, ft.sharding.P("data"))
    planned = ft.explain(fnp.sum, mesh=mesh)(ft.ShapeDtypeStruct((8,), "float32", sharding=where))
    assert fits(str(planned)) and "all-reduce" in page(planned).text and "arguments" in page(planned).text


OPERATIONS = [
    Operation("<fusion>" * 10, "step", 3, 0.006, "/a/very/long/path/" * 8 + "train.py:12"),
    Operation("dot", "step", 1, 0.003, "/home/me/train.py:14"),
    Operation("copy", "other", 1, 0.001, ""),
]


def test_a_profile_by_operation_and_line():
    text = reporting.table(OPERATIONS, 0.02)
    assert fits(text) and "10 ms in operations of compiled programs, of 20 ms" in text
    assert "60.0%" in text and "unknown" in text and "/home/me/train.py:14" in text
    assert list(reporting.by_lines(OPERATIONS).values()) == [0.006, 0.003, 0.001]
    found = ft.profiler.Profile()
    found.operations, found.seconds = OPERATIONS, 0.02
    shown = page(found)
    assert shown.tags.count("table") == 2 and "train.py:14" in shown.text and "<fusion>" in shown.text
    widths = re.findall(r'class="bar" style="width:([\d.]+)px"', found._repr_html_())
    assert widths == ["96.0", "48.0", "16.0"] * 2
    found.operations = [Operation("broadcast_multiply_fusion", "my_loss", 5, 0.01, "/home/me/train.py:14")]
    for part in ("multiply_<wbr>fusion", "my_<wbr>loss", ">train.py:14<", "me/<wbr>train.<wbr>py:14"):
        assert part in found._repr_html_()  # the table fits narrow pages
    assert page(ft.profiler.Profile()) and fits(str(ft.profiler.Profile()))


def test_a_history():
    found = ft.inspect.history(ft.grad(loss))(X)
    shown = page(found)
    assert shown.tags.count("details") == len(found.stages) and "optimized HLO" in shown.text
    assert "def loss" in str(found)


# ------------------------------------------------------------------------------------------------ settings
def test_settings_fit():
    assert fits(str(backends.describe()))
    for name in backends.settings.SETTINGS:
        assert all(len(line) <= 100 or " " not in line.strip() for line in str(backends.describe(name)).split("\n"))
    found = page(backends.describe())
    rows = backends.describe().rows
    reasons = {effect for *_, effect in rows} - {"yes"}  # below the table, once each
    assert found.tags.count("tr") == len(rows) + 1 + len(reasons) and "fast_lowerings" in found.text


@pytest.mark.parametrize("value", ["<script>", "x" * 500])
def test_settings_of_any_value(value):
    described = backends.describe("cache")
    described.rows = [(name, repr(value), *rest) for name, _, *rest in described.rows]
    assert fits(str(described)) and max(map(len, page(described).text.split())) < 200
