"""`ft.explain(f, mesh=...)`: programs compiled for meshes whose devices are not present."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.xla import program_costs
from functorch_like.debug.plan import Rates
from functorch_like.errors import ArgumentError
from functorch_like.examples import transformer
from functorch_like.sharding import AbstractMesh, NamedSharding, P

MESH = AbstractMesh((16, 4), ("data", "model"))


def shaped(shape, *spec, mesh=MESH, dtype=np.float32):
    return ft.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def by_kind(plan):
    return {(e.kind, e.axes): (e.count, e.bytes) for e in plan.exchanges}


def test_data_parallel_gradients():
    def step(w, x, y):
        return w - 0.1 * ft.grad(lambda w: fnp.sum((x @ w - y) ** 2))(w)

    plan = ft.explain(step, mesh=MESH)(shaped((256, 64)), shaped((1024, 256), "data"), shaped((1024, 64), "data"))
    share = 1024 // 16
    assert plan.memory["argument"] == 4 * (256 * 64 + share * 256 + share * 64)
    assert plan.memory["output"] == 4 * 256 * 64
    assert plan.flops == 2 * 2 * share * 256 * 64  # the forward product, and the gradient of the weights
    assert by_kind(plan) == {("all-reduce", ("data",)): (1, 4 * 256 * 64)}
    assert "all-reduce over 'data' (16 devices) once: 64 KiB" in str(plan)


def test_loops_count_as_often_as_they_run():
    def layers(x, ws):
        return lax.scan(lambda h, w: (fnp.tanh(h @ w), None), x, ws)[0]

    plan = ft.explain(layers, mesh=MESH)(shaped((1024, 512), "data"), shaped((8, 512, 512), None, "model", None))
    assert plan.flops == 8 * 2 * (1024 // 16) * (512 // 4) * 512
    moved = by_kind(plan)
    assert sum(count for (kind, axes), (count, _) in moved.items() if axes == ("model",)) >= 8
    assert all(axes == ("model",) for _, axes in moved)


def test_nothing_to_exchange():
    plan = ft.explain(ft.jit(fnp.tanh), mesh=MESH)(shaped((64, 8), "data", "model"))
    assert plan.exchanges == [] and "collectives on each: none" in str(plan)
    assert plan.memory["argument"] == 4 * 4 * 2


def test_the_model_of_time():
    rates = {"flops": 1e6, "memory": 1e9, "links": {"data": 1e5, "model": 1e6}, "latency": 1e-3}
    plan = ft.explain(lambda x, w: fnp.sum(x @ w, axis=0), mesh=MESH, rates=rates)(
        shaped((1024, 64), "data"), shaped((64, 32))
    )
    (exchange,) = plan.exchanges
    assert (exchange.kind, exchange.devices) == ("all-reduce", 16)
    ring = 2 * (15 / 16 * 4 * 32 / 1e5 + 15 * 1e-3)
    assert plan.communicating == pytest.approx(ring)
    assert plan.computing == pytest.approx(max(plan.flops / 1e6, plan.traffic / 1e9))
    assert plan.seconds == pytest.approx((max(plan.computing, ring), plan.computing + ring))
    assert "time of one run:" in str(plan)
    assert plan.rates == Rates(**rates)


def test_a_transformer_on_512_devices():
    mesh = AbstractMesh((64, 8), ("data", "model"))
    sizes = transformer.Sizes(words=1024, length=64, width=256, heads=8, layers=2)
    arguments = transformer.split_arguments(sizes, 128, mesh)
    plan = ft.explain(ft.jit(transformer.train_step(sizes), donate_argnums=0), mesh=mesh)(*arguments)
    matrices = 2 * 256 * (3 * 256 + 256 + 8 * 256) + 1024 * 256
    assert plan.memory["argument"] == 4 * (matrices // 8 + 64 * 256 + 2 * 65)
    assert plan.memory["alias"] > 0 and "512 devices (cpu)" in str(plan)
    assert {axes for _, axes in by_kind(plan)} >= {("model",), ("data",)}


def test_devices_that_are_here_are_left_alone():
    before = ft.devices()
    ft.explain(fnp.sum, mesh=AbstractMesh((3,), ("x",)))(np.ones(9, np.float32))
    assert ft.devices() == before


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mesh": (4, 2)}, r"mesh=\(4, 2\) of type tuple is not a mesh"),
        ({"mesh": MESH, "target": "h20"}, "target='h20' is unknown; did you mean 'h200'"),
        ({"mesh": MESH, "rates": {"flop": 1}}, "are not rates"),
        ({"mesh": MESH, "rates": {"flops": 1, "memory": 0, "links": 1}}, "are not rates"),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(ArgumentError, match=text):
        ft.explain(fnp.sum, **options)


def test_an_argument_on_another_mesh():
    other = AbstractMesh((8,), ("data",))
    with pytest.raises(ArgumentError, match=r"is on AbstractMesh.*'data': 8.*, and the plan is for"):
        ft.explain(fnp.sum, mesh=MESH)(shaped((8,), "data", mesh=other))


def test_a_time_without_rates():
    plan = ft.explain(fnp.sum, mesh=MESH)(shaped((16,), "data"))
    with pytest.raises(ArgumentError, match="the time of a plan needs rates"):
        plan.seconds  # noqa: B018


HLO = """
HloModule m

%add (a: f32[], b: f32[]) -> f32[] {
  ROOT %s = f32[] add(%a, %b)
}

%fused (p: f32[4,8], q: f32[8,2]) -> f32[4,2] {
  %p = f32[4,8]{1,0} parameter(0)
  %q = f32[8,2]{1,0} parameter(1)
  ROOT %d = f32[4,2]{1,0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%body (t: (s32[], f32[4,2])) -> (s32[], f32[4,2]) {
  %t = (s32[], f32[4,2]{1,0}) parameter(0)
  %x = f32[4,2]{1,0} get-tuple-element(%t), index=1
  %r = f32[4,2]{1,0} all-reduce(%x), replica_groups=GROUPS, to_apply=%add
  ROOT %u = (s32[], f32[4,2]{1,0}) tuple(%i, %r)
}

ENTRY %main (p: f32[4,8], q: f32[8,2]) -> f32[4,2] {
  %p = f32[4,8]{1,0} parameter(0)
  %q = f32[8,2]{1,0} parameter(1)
  %f = f32[4,2]{1,0} fusion(%p, %q), kind=kOutput, calls=%fused
  %z = bf16[16]{0} all-gather-start(%h), replica_groups={{0,2},{1,3}}
  %w = (s32[], f32[4,2]{1,0}) while(%init), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  ROOT %o = f32[4,2]{1,0} get-tuple-element(%w), index=1
}
"""


@pytest.mark.parametrize(
    ("groups", "first"),
    [
        ("{{0,1},{2,3}}", (0, 1)),
        ("[2,2]<=[4]", (0, 1)),
        ("[2,2]<=[2,2]T(1,0)", (0, 2)),
        ("mesh['a'=2,'b'=2] {'b'}", (0, 1)),
        ("mesh['a'=2,'b'=2] {'a'}", (0, 2)),
        ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", (0, 2)),
        ("{}", ()),
    ],
)
def test_what_is_read_from_a_program(groups, first):
    costs = program_costs.costs(HLO.replace("GROUPS", groups))
    assert costs.flops == 2 * 4 * 2 * 8
    gather, reduce = sorted(costs.collectives, key=lambda c: c.kind)
    assert (gather.kind, gather.group, gather.bytes, gather.count) == ("all-gather", (0, 2), 32, 1)
    assert (reduce.kind, reduce.group, reduce.bytes, reduce.count) == ("all-reduce", first, 32, 5)
    assert costs.bytes == 4 * (32 + 16 + 8)  # only the fusion counts as a kernel


def test_axes_of_groups():
    names, sizes = ("a", "b", "c"), (2, 3, 4)
    assert program_costs.axes_of((0, 1, 2, 3), names, sizes) == ("c",)
    assert program_costs.axes_of((0, 12), names, sizes) == ("a",)
    assert program_costs.axes_of((0, 4, 8, 12, 16, 20), names, sizes) == ("a", "b")
    assert program_costs.axes_of((), names, sizes) == ()
