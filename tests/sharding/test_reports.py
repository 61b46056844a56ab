"""Reports about sharded programs (pictures, explanations, collectives), and callbacks from them."""

import re
import sys
import types

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.xla.collective_report import in_text
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def unwrapped(explanation):
    """Return the text of an explanation on one line."""
    return " ".join(str(explanation).split())


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((4, 2), ("x", "y"))


@pytest.fixture
def split(mesh):
    return lambda *spec: NamedSharding(mesh, P(*spec))


PICTURES = {
    ("x", "y"): """
+-------+-------+
| CPU 0 | CPU 1 |
+-------+-------+
| CPU 2 | CPU 3 |
+-------+-------+
| CPU 4 | CPU 5 |
+-------+-------+
| CPU 6 | CPU 7 |
+-------+-------+
""",
    (None, "y"): """
+-------------+-------------+
| CPU 0,2,4,6 | CPU 1,3,5,7 |
+-------------+-------------+
""",
    (): """
+---------------------+
| CPU 0,1,2,3,4,5,6,7 |
+---------------------+
""",
}


@pytest.mark.parametrize("spec", PICTURES)
def test_pictures(split, spec, capsys):
    ft.debug.visualize_array_sharding(ft.device_put(X, split(*spec)))
    assert capsys.readouterr().out == PICTURES[spec].lstrip()


def test_pictures_of_vectors_and_shapes(split, capsys):
    ft.debug.visualize_sharding((8,), split("x"))
    line = "+---------" * 4 + "+"
    assert capsys.readouterr().out.splitlines() == [line, "| CPU 0,1 | CPU 2,3 | CPU 4,5 | CPU 6,7 |", line]
    ft.debug.visualize_array_sharding(fnp.ones(3))
    assert "CPU 0" in capsys.readouterr().out
    with pytest.raises(ft.FtError, match="3 dimensions"):
        ft.debug.visualize_sharding((2, 2, 2), split())
    with pytest.raises(ft.FtError, match="of type str is not an array"):
        ft.debug.visualize_array_sharding("x")


def test_an_explanation_says_who_chose_and_what_is_exchanged(split):
    f = ft.jit(lambda x, w: (x @ w).sum())
    text = unwrapped(ft.explain(f)(ft.device_put(X, split("x")), ft.device_put(X, split())))
    assert "split <lambda>: over Mesh('x': 4, 'y': 2); argument 0 P('x') (given); argument 1 P() (given)" in text
    assert "result 0 P() (chosen by XLA)" in text
    assert "1 all-reduce (4 bytes)" in text
    again = unwrapped(ft.explain(f)(ft.device_put(X, split("y")), ft.device_put(X, split())))
    assert "needed another program" in again


def test_collectives_are_counted_with_their_bytes(mesh, split):
    compiled = ft.jit(lambda x: x.sum(0)).lower(ft.device_put(X, split("x"))).compile()
    ((kind, count, size),) = compiled.collectives()
    assert (kind, count, size) == ("all-reduce", 1, 8 * 4)
    f = ft.shard_map(lambda x: lax.all_gather(x, "x", tiled=True), mesh=mesh, in_specs=P("x"), out_specs=P())
    ((kind, count, size),) = ft.jit(f).lower(X).compile().collectives()
    assert (kind, count, size) == ("all-gather", 1, X.nbytes)
    assert ft.jit(fnp.sin).lower(X).compile().collectives() == []


def test_collectives_in_the_text_of_other_backends():
    text = """
  %ag = (f32[2,8]{1,0}, f32[8,8]{1,0}) all-gather-start(%p), channel_id=1
  %done = f32[8,8]{1,0} all-gather-done(%ag)
  %a2a = (s8[4]{0}, s8[4]{0}) all-to-all(%x, %y), channel_id=2
  ROOT %ar = bf16[3]{0} all-reduce(%z), to_apply=%add
"""
    found = {c.kind: (c.count, c.bytes) for c in in_text(text)}
    assert found == {"all-gather": (1, (64 + 256) // 2), "all-to-all": (1, 8), "all-reduce": (1, 6)}


# ------------------------------------------------------------------------------------------------------------ callbacks
def test_callbacks_get_whole_values_once(split):
    seen = []
    x = ft.device_put(X, split("x", "y"))
    for ordered in (False, True):
        ft.jit(lambda x, o=ordered: ft.debug.callback(lambda v: seen.append(np.array(v)), x, ordered=o))(x)
        ft.effects_barrier()
        assert len(seen) == 1 and np.array_equal(seen.pop(), X)
    out = ft.jit(lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((8, 8), "float32"), x) * 2)(x)
    np.testing.assert_allclose(np.asarray(out), 2 * np.sin(X), atol=1e-5)


def test_callbacks_inside_of_shard_map_get_parts(mesh):
    seen = []

    def f(x):
        ft.debug.callback(lambda i, v: seen.append((int(i), float(v))), lax.axis_index("x"), x.sum())
        return x

    ft.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X)
    ft.effects_barrier()
    assert sorted(seen) == sorted([(i, float(X[2 * i : 2 * i + 2].sum())) for i in range(4)] * 2)
    ordered = ft.shard_map(lambda x: ft.debug.print("{}", x, ordered=True), mesh=mesh, in_specs=P("x"), out_specs=P())
    with pytest.raises(ft.FtError, match="no order among devices"):
        ordered(X)


def test_explain_names_the_argument_whose_sharding_changed(split):
    f = ft.jit(lambda w, batch: (w["x"] @ batch["y"]).sum())
    put = lambda *spec: ft.device_put(X, split(*spec))
    f({"x": put()}, {"y": put("x")})
    told = unwrapped(ft.explain(f)({"x": put()}, {"y": put("x", "y")}))
    assert "args[1]['y']: split by P('x') before, split by P('x', 'y') now" in told
    told = unwrapped(ft.explain(f)({"x": put("y")}, {"y": put("x", "y")}))
    assert "args[0]['x']: whole on each device before, split by P('y') now" in told
    told = unwrapped(ft.explain(f)({"x": put("y")}, {"y": X}))
    assert "args[1]['y']: split by P('x', 'y') before, bound to no device now" in told
    pinned = ft.device_put(X, split("y").with_memory_kind("pinned_host"))
    told = unwrapped(ft.explain(f)({"x": pinned}, {"y": X}))
    assert "args[0]['x']: split by P('y') before, split by P('y') in pinned_host now" in told
    told = unwrapped(ft.explain(f)({"x": X}, {"y": X}))
    assert "another device: Mesh('x': 4, 'y': 2) before, cpu:0 now" in told.lower().replace("mesh", "Mesh"), told


def test_pictures_in_notebooks(split, monkeypatch, capsys):
    """A notebook shows a table with one cell and one colour for each part."""
    shown = []
    shell = types.SimpleNamespace(kernel=None)
    display = types.ModuleType("IPython.display")
    display.display = shown.append
    ipython = types.ModuleType("IPython")
    ipython.get_ipython, ipython.display = (lambda: shell), display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    ft.debug.visualize_array_sharding(ft.device_put(X, split(None, "y")))
    ft.debug.visualize_sharding((16,), split("x"))
    assert capsys.readouterr().out == ""
    assert all("<style>" in picture._repr_html_() for picture in shown)  # wide pictures scroll
    columns, line = (picture._repr_html_().replace("<wbr>", "") for picture in shown)
    cells = re.findall(r"background:hsl\((\d+),[^>]*>([^<]*)</td>", columns)
    assert [text for _, text in cells] == ["CPU 0,2,4,6", "CPU 1,3,5,7"] and cells[0][0] != cells[1][0]
    assert columns.count("<tr>") == 1 and "P(None, &#x27;y&#x27;)" in columns
    assert line.count("<td") == 4
    # Labels are centred inside an array's display too, and no colour is fixed to the background of one theme.
    assert columns.count("vertical-align:middle") == 2 and "#fff" not in columns
    monkeypatch.setattr(ipython, "get_ipython", lambda: None)  # a terminal
    ft.debug.visualize_sharding((16,), split("x"))
    assert "CPU 0,1" in capsys.readouterr().out
