"""References to arrays under jit, loops, branches, derivatives and maps, against the same steps in NumPy."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax


def test_jit_reads_and_writes_what_it_closes_over_in_each_call():
    ref = ft.new_ref(fnp.zeros(3))

    @ft.jit
    def step(x):
        ref[1] += x
        return ref[...] * 2

    for k in range(1, 4):
        assert step(1.0).tolist() == [0.0, 2.0 * k, 0.0]
    ref[...] = fnp.ones(3)  # between calls
    assert step(1.0).tolist() == [2.0, 4.0, 2.0]
    assert ref[...].tolist() == [1.0, 2.0, 1.0]


def test_jit_takes_refs_wherever_arguments_have_leaves_and_traces_once_for_each_type():
    traces = []

    @ft.jit(static_argnums=1, static_argnames="k")
    def f(tree, n, x, k=1):
        traces.append(1)
        tree["r"][n] += x * k
        tree["s"][0][...] = tree["r"][...].sum()
        return tree["a"] + tree["r"][n]

    r, s = ft.new_ref(fnp.zeros(3)), ft.new_ref(0.0)
    for k in range(3):
        got = f({"r": r, "s": [s], "a": 1.0}, 1, 2.0)
        assert got.item() == 1 + 2 * (k + 1)
    assert len(traces) == 1
    f({"r": r, "s": [s], "a": 1.0}, 2, 2.0, k=5)
    assert r[...].tolist() == [0.0, 6.0, 10.0] and s[...].item() == 16.0
    other = ft.new_ref(fnp.full(3, 100.0))
    f({"r": other, "s": [s], "a": 1.0}, 1, 2.0)  # another Ref, the same program
    assert other[...].tolist() == [100.0, 102.0, 100.0] and r[...].tolist() == [0.0, 6.0, 10.0]
    assert len(traces) == 2
    f({"r": ft.new_ref(fnp.zeros(4)), "s": [s], "a": 1.0}, 1, 2.0)
    assert len(traces) == 3


def test_one_function_with_and_without_refs():
    f = ft.jit(lambda x: x[...] * 2)
    assert f(fnp.asarray(3.0)).item() == 6.0
    assert f(ft.new_ref(4.0)).item() == 8.0
    assert f(fnp.asarray(5.0)).item() == 10.0


def test_what_is_only_read_is_not_written():
    ref = ft.new_ref(2.0)
    held = ref[...]
    assert ft.jit(lambda x: x * ref[...])(3.0).item() == 6.0
    assert ref[...] is held


def test_a_failing_call_writes_nothing():
    ref = ft.new_ref(1.0)

    @ft.jit
    def f(x):
        ref[...] = x
        raise KeyError("after the write")

    with pytest.raises(KeyError):
        f(5.0)
    assert ref[...].item() == 1.0


def test_nested_functions_loops_and_branches_keep_pythons_order():
    ref, sums = ft.new_ref(0.0), ft.new_ref(fnp.zeros(2))

    @ft.jit
    def inner(q, x):
        q[...] += x
        sums[0] += q[...]
        return x

    def program(x):
        local = ft.new_ref(3.0)
        inner(ref, x)
        inner(local, x)

        def body(c, y):
            inner(local, y)
            lax.cond(local[...] > 6, lambda: ref.addupdate(y), lambda: sums.addupdate(1.0, 1))
            ref[...] *= 2
            return c + ref[...], local[...]

        carry, ys = lax.scan(body, 0.0, fnp.arange(3.0))
        return ys, carry, local[...]

    def in_python(x, ref, sums):
        local, ys, carry = 3.0, [], 0.0
        ref += x
        sums[0] += ref
        local += x
        sums[0] += local
        for y in range(3):
            local += y
            sums[0] += local
            if local > 6:
                ref += y
            else:
                sums[1] += 1
            ref *= 2
            carry += ref
            ys.append(local)
        return (ys, carry, local), ref, sums

    want_ref, want_sums = 0.0, np.zeros(2)
    for f, x in ((program, 2.0), (ft.jit(program), 1.0), (ft.jit(program), 5.0)):
        want, want_ref, want_sums = in_python(x, want_ref, want_sums)
        for a, b in zip(f(x), want, strict=True):
            np.testing.assert_allclose(a, b)
        np.testing.assert_allclose(ref[...], want_ref)
        np.testing.assert_allclose(sums[...], want_sums)


@pytest.mark.parametrize("jitted", [False, True])
def test_while_loops(jitted):
    total, rows = ft.new_ref(0.0), ft.new_ref(fnp.zeros(8))

    def run(limit):
        def body(n):
            total[...] += n + 1.0
            rows[n] = total[...]
            return n + 1

        return lax.while_loop(lambda n: total[...] < limit, body, 0)

    steps = (ft.jit(run) if jitted else run)(9.0)
    assert steps.item() == 4 and total[...].item() == 10.0
    assert rows[...].tolist() == [1.0, 3.0, 6.0, 10.0, 0.0, 0.0, 0.0, 0.0]


def test_loops_with_bounds_known_and_traced_scans_in_reverse_and_of_no_steps():
    ref = ft.new_ref(fnp.zeros(5))

    def body(i, c):
        ref[i] = ref[i] * 10 + 1.0 * i
        return c

    lax.fori_loop(1, 4, body, None)
    assert ref[...].tolist() == [0.0, 1.0, 2.0, 3.0, 0.0]
    ft.jit(lambda n: lax.fori_loop(1, n, body, None))(3)
    assert ref[...].tolist() == [0.0, 11.0, 22.0, 3.0, 0.0]
    order = ft.new_ref(0)

    def note(c, x):
        order[...] = order[...] * 10 + x
        return c, order[...]

    assert lax.scan(note, None, fnp.asarray([1, 2, 3]), reverse=True)[1].tolist() == [321, 32, 3]
    assert lax.scan(note, None, fnp.zeros(0, "int32"))[1].shape == (0,) and order[...].item() == 321
    assert lax.map(lambda x: x + order[...], fnp.arange(2)).tolist() == [321, 322]


def test_branches_take_refs_as_operands_and_switch_writes_one_of_them():
    refs = [ft.new_ref(0.0) for _ in range(3)]

    def put(k):
        return lambda r, x: r[k].__setitem__(..., x)

    for f in (lax.switch, ft.jit(lambda k, *a: lax.switch(k, [put(0), put(1), put(2)], *a))):
        branches = ([put(0), put(1), put(2)],) if f is lax.switch else ()
        f(1, *branches, refs, 4.0)
        assert [r[...].item() for r in refs] == [0.0, 4.0, 0.0]
        refs[1][...] = 0.0


def test_derivatives_of_functions_that_make_refs():
    def f(x):
        ref = ft.new_ref(fnp.zeros(3))

        def body(i, c):
            ref[i] = x * i
            return c

        lax.fori_loop(0, 3, body, None)
        lax.cond(x > 1, lambda: ref.addupdate(x**2, 1), lambda: None)
        return (ref[...] ** 2).sum()

    slope = lambda x: 2 * (x + x**2) * (1 + 2 * x) + 8 * x if x > 1 else 10 * x
    for x in (0.5, 2.0):
        for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f)), ft.jacfwd(f), ft.grad(ft.checkpoint(f))):
            np.testing.assert_allclose(g(x), slope(x), rtol=1e-6)
    xs = np.array([0.5, 2.0, 3.0], np.float32)
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(xs), [slope(x) for x in xs], rtol=1e-6)
    np.testing.assert_allclose(ft.grad(ft.grad(f))(0.5), 10.0, rtol=1e-6)


def test_values_on_the_side_of_a_gradient():
    seen = ft.new_ref(0.0)

    def loss(x, ref):
        y = x * x
        ref[...] = lax.stop_gradient(y)
        seen[...] += lax.stop_gradient(x)
        return y * x

    ref = ft.new_ref(0.0)
    for k, g in enumerate((ft.grad(loss), ft.jit(ft.grad(loss)), ft.grad(ft.jit(loss)))):
        assert g(3.0, ref).item() == 27.0
        assert ref[...].item() == 9.0 and seen[...].item() == 3.0 * (k + 1)
        ref[...] = 0.0


def test_a_rule_puts_the_cotangent_into_a_ref():
    @ft.custom_vjp
    def stash(ref, x):
        return x

    def bwd(ref, ct):
        ref[...] = ct
        return None, ct

    stash.defvjp(lambda ref, x: (x, ref), bwd)
    f = lambda x, ref: fnp.sin(stash(ref, 2 * x))
    for g in (ft.grad(f), ft.jit(ft.grad(f))):
        ref = ft.new_ref(0.0)
        np.testing.assert_allclose(g(0.3, ref), 2 * np.cos(0.6), rtol=1e-6)
        np.testing.assert_allclose(ref[...], np.cos(0.6), rtol=1e-6)
    np.testing.assert_allclose(f(0.3, ref), np.sin(0.6), rtol=1e-6)
    refs = ft.new_ref(fnp.zeros(3))
    xs = np.linspace(0, 1, 3, dtype=np.float32)
    ft.vmap(ft.grad(f))(xs, refs)
    np.testing.assert_allclose(refs[...], np.cos(2 * xs), rtol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_maps_have_a_ref_for_each_element(wrap):
    ref = ft.new_ref(fnp.zeros((2, 3)))
    same = ft.new_ref(10.0)

    def f(x, r, q):
        r[0] += x
        r[1] = 7.0
        return r[0] * q[...]

    out = wrap(ft.vmap(f, in_axes=(0, 1, None)))(fnp.arange(3.0), ref, same)
    assert out.tolist() == [0.0, 10.0, 20.0]
    assert ref[...].tolist() == [[0.0, 1.0, 2.0], [7.0, 7.0, 7.0]]
    assert same[...].item() == 10.0
    ft.vmap(lambda x, *, r: r.addupdate(x), chunk_size=2)(fnp.arange(4.0), r=(four := ft.new_ref(fnp.ones(4))))
    assert four[...].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_eval_shape_leaves_refs_as_they_are():
    ref = ft.new_ref(fnp.zeros(3))

    def f(r, x):
        r[0] = x
        ref[...] += 1
        return r[1:] * ref[0]

    assert ft.eval_shape(f, ft.new_ref(fnp.zeros(4)), 1.0) == ft.ShapeDtypeStruct((3,), "float32")
    assert ref[...].tolist() == [0.0, 0.0, 0.0]


def test_without_jit_refs_are_written_step_by_step():
    ref = ft.new_ref(0.0)

    @ft.jit
    def f(r):
        lax.scan(lambda c, x: (c, r.addupdate(x)), None, fnp.arange(3.0))
        r[...] *= 2

    with ft.disable_jit():
        f(ref)
    assert ref[...].item() == 6.0


def test_compile_time_values_are_those_of_the_function_around():
    ref = ft.new_ref(1.0)

    @ft.jit
    def f(x):
        ref[...] = x
        with ft.ensure_compile_time_eval():
            ref[...] += 1
        return ref[...]

    assert f(5.0).item() == 6.0 and ref[...].item() == 6.0


def test_clearing_caches_and_waiting_for_the_last_tier():
    ref = ft.new_ref(fnp.zeros(2))

    @ft.jit
    def f():
        ref[0] += 1

    f()
    f.optimised()
    f.clear_cache()
    f()
    ft.clear_caches()
    f()
    assert ref[...].tolist() == [3.0, 0.0]


def test_loops_in_loops_are_traced_a_linear_number_of_times():
    seen = []

    @ft.jit
    def f(x):
        ref = ft.new_ref(x)

        def nested(depth):
            if depth == 0:
                seen.append(1)
                ref[...] *= 2
            else:
                lax.fori_loop(0, 2, lambda i, c: nested(depth - 1) or c, 0)

        nested(4)
        return ref[...]

    assert f(1.0) == 2.0**16
    assert len(seen) <= 5
