"""Uses of references that have no meaning or are not supported yet: each is refused, and the Ref keeps its value."""

import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, export, lax
from functorch_like.sharding import PartitionSpec

REF = None


def write(x):
    REF[...] += 1
    return x


def held(x):
    REF[...] = x
    return x


def two_paths(x):
    if x > 0:
        REF[...] += 1
    return x


def local_on_paths(x):
    ref = ft.new_ref(0.0)
    if x > 0:
        ref[...] += 1
    return ref[...]


def kept(made=[]):  # noqa: B006
    def f(x):
        made.append(ft.new_ref(x))
        return x

    ft.jit(f)(1.0)
    return made[-1][...]


def twice_mapped():
    ref = ft.new_ref(fnp.zeros(2))
    ft.vmap(lambda r: r.__setitem__(..., ref[0]))(ref)


def stash_by_jit():
    @ft.custom_vjp
    def stash(ref, x):
        return x

    stash.defvjp(lambda ref, x: (x, ref), lambda ref, ct: (ref.__setitem__(..., ct), ct))
    ft.grad(ft.jit(lambda x, r: stash(r, x)))(1.0, REF)


def rule(returned):
    @ft.custom_vjp
    def f(ref, x):
        return x

    f.defvjp(lambda ref, x: (x, ref), lambda ref, ct: returned(ct))
    ft.grad(lambda x: f(REF, x))(1.0)


def mesh():
    return ft.make_mesh((1,), ("i",))


REFUSED = {
    "jit returns an argument": (lambda: ft.jit(lambda r: r)(REF), "DtypeError", "return its value"),
    "jit returns a new one": (lambda: ft.jit(lambda: ft.new_ref(1.0))(), "DtypeError", "read it first"),
    "vmap returns one": (lambda: ft.vmap(lambda r: r)(ft.new_ref(fnp.ones(2))), "DtypeError", "return its value"),
    "scan returns one": (lambda: lax.scan(lambda c, x: (c, REF), 0.0, fnp.ones(2)), "DtypeError", "read it first"),
    "a carry": (lambda: lax.scan(lambda c, x: (c, x), REF, fnp.ones(2)), "DtypeError", "read it first"),
    "the same argument twice": (
        lambda: ft.jit(lambda a, b: None)(REF, REF),
        "ArgumentError",
        r"args\[0\] and as args\[1\]",
    ),
    "argument and closed over": (lambda: ft.jit(lambda a: a[...] + REF[...])(REF), "ArgumentError", "closes over"),
    "closed over, mapped": (twice_mapped, "ArgumentError", "use the argument"),
    "frozen in jit": (lambda: ft.jit(lambda r: ft.freeze(r))(REF), "ArgumentError", "cannot be frozen here"),
    "closed over and frozen in jit": (
        lambda: ft.jit(lambda: ft.freeze(REF))(),
        "ArgumentError",
        "cannot be frozen here",
    ),
    "frozen in grad": (lambda: ft.grad(lambda x: x * ft.freeze(REF))(1.0), "ArgumentError", "cannot be frozen here"),
    "written in vmap": (lambda: ft.vmap(write)(fnp.ones(2)), "UnsupportedError", "map over it"),
    "an element in vmap": (lambda: ft.vmap(held)(fnp.ones(2)), "UnsupportedError", "map over it"),
    "in jit in vmap": (lambda: ft.vmap(ft.jit(write))(fnp.ones(2)), "UnsupportedError", "map over it"),
    "in scan in vmap": (
        lambda: ft.vmap(lambda y: lax.scan(lambda c, x: (write(c), x), y, fnp.ones(2)))(fnp.ones(2)),
        "UnsupportedError",
        "map over it",
    ),
    "in vmap in scan": (
        lambda: lax.scan(lambda c, x: (c, ft.vmap(write)(x)), 0.0, fnp.ones((2, 2))),
        "UnsupportedError",
        "map over it",
    ),
    "in map by vmap": (lambda: lax.map(write, fnp.ones(4), batch_size=2), "UnsupportedError", "map over it"),
    "in jacfwd": (lambda: ft.jacfwd(write)(1.0), "UnsupportedError", "map over it"),
    "a perturbed value": (lambda: ft.grad(held)(1.0), "DifferentiationError", "stop_gradient"),
    "a perturbed value in jit": (lambda: ft.jit(ft.grad(held))(1.0), "DifferentiationError", "stop_gradient"),
    "a perturbed value by jit": (lambda: ft.grad(ft.jit(held))(1.0), "DifferentiationError", "stop_gradient"),
    "a perturbed value in jvp": (lambda: ft.jvp(held, (1.0,), (1.0,)), "DifferentiationError", "stop_gradient"),
    "a perturbed value in a loop": (
        lambda: ft.grad(lambda y: lax.fori_loop(0, 2, lambda i, c: held(c), y))(1.0),
        "DifferentiationError",
        "stop_gradient",
    ),
    "the derivative by one": (lambda: ft.grad(lambda r: r[...])(REF), "DtypeError", "read it first"),
    "checkpoint": (lambda: ft.checkpoint(write)(1.0), "UnsupportedError", "checkpoint"),
    "checkpoint in grad": (lambda: ft.grad(ft.checkpoint(write))(1.0), "UnsupportedError", "checkpoint"),
    "the condition of a loop": (
        lambda: lax.while_loop(lambda x: write(x) < 3, lambda x: x + 1, 0.0),
        "UnsupportedError",
        "condition",
    ),
    "associative_scan": (
        lambda: lax.associative_scan(lambda a, b: write(a + b), fnp.ones(4)),
        "UnsupportedError",
        "associative_scan",
    ),
    "make_jaxpr": (lambda: ft.make_jaxpr(write)(1.0), "UnsupportedError", "make_jaxpr"),
    "make_jaxpr of an argument": (lambda: ft.make_jaxpr(lambda r: r[...])(REF), "DtypeError", "read it first"),
    "lower": (lambda: ft.jit(write).lower(1.0), "UnsupportedError", "jit\\(write\\)"),
    "lower of an argument": (lambda: ft.jit(lambda r: r[...]).lower(REF), "DtypeError", "read it first"),
    "export": (lambda: export.export(ft.jit(write))(fnp.ones(2)), "UnsupportedError", "reads or writes"),
    "shard_map": (
        lambda: ft.shard_map(write, mesh=mesh(), in_specs=PartitionSpec("i"), out_specs=PartitionSpec("i"))(
            fnp.ones(2)
        ),
        "UnsupportedError",
        "shard_map",
    ),
    "paths": (lambda: ft.jit(two_paths, control_flow="paths")(1.0), "UnsupportedError", "control_flow='error'"),
    "an argument of paths": (
        lambda: ft.jit(lambda r, x: r[...] if x > 0 else x, control_flow="paths")(REF, 1.0),
        "UnsupportedError",
        "control_flow='error'",
    ),
    "made on a path": (
        lambda: ft.jit(local_on_paths, control_flow="paths")(1.0),
        "UnsupportedError",
        "control_flow='error'",
    ),
    "in jit on a path": (
        lambda: ft.jit(lambda x: ft.jit(write)(x) if x > 0 else x, control_flow="paths")(1.0),
        "UnsupportedError",
        "control_flow='error'",
    ),
    "donated": (lambda: ft.jit(write, donate_argnums=0)(REF), "ArgumentError", "donate"),
    "kept after its function": (kept, "LeakError", "return ref"),
    "a rule that runs later": (stash_by_jit, "LeakError", "has already returned"),
    "a cotangent of a Ref": (lambda: rule(lambda ct: (ct, ct)), "TreeError", "None for a Ref"),
    "too few cotangents": (lambda: rule(lambda ct: (ct,)), "TreeError", "one entry for each argument"),
    "nondiff of custom_jvp": (lambda: ft.custom_jvp(lambda r, x: x)(REF, 1.0), "ArgumentError", "defjvp"),
    "a traced one pickled": (lambda: ft.jit(lambda r: r.__reduce__())(REF), "ArgumentError", "pickled"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_a_remedy_and_the_ref_keeps_its_value(name, monkeypatch):
    monkeypatch.setitem(globals(), "REF", ft.new_ref(2.0))
    use, kind, text = REFUSED[name]
    with pytest.raises(getattr(errors, kind), match=text) as caught:
        use()
    assert "what to do" in str(caught.value)
    assert REF[...].item() == 2.0
    REF[...] = 3.0  # the Ref can still be used
    assert ft.jit(lambda: REF[...] * 2)().item() == 6.0
