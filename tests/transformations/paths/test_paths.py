"""Python control flow that depends on values, under jit: results, number of programs, errors."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.python_paths import POSITIVE, bisect, branch, newton, paths

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, testing


def agree(fun, *calls, rtol=1e-5):
    """Check calls against plain Python, and return the number of programs that each call compiled or loaded."""
    made, counts = paths(fun), []
    for args in calls:
        told = ft.explain(made)(*args)
        counts.append(told.count("compile") + told.count("load"))
        got, want = ft.tree.leaves(told.result), ft.tree.leaves(fun(*args))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol)
    return counts


# ---------------------------------------------------------------------------------------------------------- programs
def test_an_if_compiles_once_for_each_path_and_then_never():
    counts = agree(lambda x: fnp.sin(x) if x > 0 else fnp.cos(x), *[(v,) for v in (1.0, 2.0, -1.0, 1.0, -2.0, 3.0)])
    assert counts[0] == 1
    assert sum(counts[3:]) == 0


def test_both_branches_known_are_one_program_without_checks():
    f = paths(branch)
    for x in (POSITIVE, -POSITIVE) * 2:
        f(x)
    assert f.paths().total
    assert "one program of all paths" in str(f.paths())


def test_nested_branches():
    def f(x, y):
        if x > 0:
            if y > 0:
                return x * y
            return x - y
        elif y > 10:
            return y
        return -x

    assert sum(agree(f, *[(a, b) for a in (1.0, -1.0) for b in (1.0, -2.0, 11.0)] * 2)[6:]) == 0


def test_a_while_loop_is_one_program_from_its_first_call():
    assert agree(newton, *[(v,) for v in (2.0, 3.0, 100.0, 1.0, 2.0)]) == [1, 0, 0, 0, 0]
    f = paths(newton)
    f(2.0)
    assert f.paths().total


def test_a_bisection_is_one_loop_with_a_cond_inside():
    assert sum(agree(bisect, *[(v,) for v in (2.0, 3.0, 5.0, 0.01, 7.0)])) == 1


def test_a_loop_with_a_counter_is_rolled_and_new_numbers_of_steps_are_verified():
    def f(a):
        x, n = a, 0
        while fnp.abs(x * x - a) > 1e-4:
            x = 0.5 * (x + a / x)
            n += 1
        return x, n, x * n

    counts = agree(f, *[(v,) for v in (100.0, 7.0, 1000.0, 1000.0, 50.0, 3000.0, 2.0)])
    assert counts == [1, 0, 0, 0, 0, 0, 0]


def test_a_loop_with_a_bound_of_python():
    def f(x):
        for k in range(1, 40):
            x = x - 0.1 * (x / k)
            if fnp.sum(x * x) < 1.0:
                break
        return x, k

    assert sum(agree(f, *[(np.full(3, v, np.float32),) for v in (1.0, 1.2, 1.3, 0.9, 1e3, 0.1, 1.25, 1e3)])) <= 2


def test_a_loop_that_changes_after_five_steps():
    def f(x):
        k = 0
        while x < 100.0:
            x = x * 2 if k != 5 else x + 1
            k += 1
        return x

    agree(f, *[(v,) for v in (16.0, 15.0, 30.0, 1.0, 0.5, 16.0, 0.1, 1.0)])


def test_a_step_halved_in_each_round():
    quadratic = lambda x: fnp.sum(fnp.asarray([1.0, 50.0]) * x * x)

    @paths
    def step(x):
        value, slope = ft.value_and_grad(quadratic)(x)
        t = 1.0
        while quadratic(x - t * slope) > value - 1e-4 * t * fnp.sum(slope * slope):
            t *= 0.5
        return x - t * slope, t

    x = np.array([1.0, 1.0], np.float32)
    for _ in range(12):
        want = step.__wrapped__(x)
        x, t = step(x)
        np.testing.assert_allclose(x, want[0], rtol=1e-4, atol=1e-6)
        assert float(t) == want[1]


def test_branches_that_meet_go_on_together():
    def f(x):
        if x[0] > 0:  # noqa: SIM108  (a statement, whose branches meet)
            y = x[1]
        else:
            y = -x[1]
        y = y * 2 if x[1] > 0 else y + 1
        return y if y > x[2] else x[2]

    g = paths(f)
    points = [np.array([a, b, c], np.float32) for a in (-1, 1) for b in (-1, 1) for c in (-3, 3)]
    for x in points:
        np.testing.assert_allclose(g(x), f(x))
    assert g.paths().total
    assert len(str(g.paths()).split("->")) - 1 < len(points)  # the others are combinations of these


def test_a_branch_that_sets_a_python_value_does_not_meet_the_other():
    def f(x, y):
        k = 1 if x > 0 else 2
        return y * k if y > 5 else y

    agree(f, (1.0, 1.0), (-1.0, 1.0), (1.0, 6.0), (-1.0, 6.0), (1.0, 7.0))


def test_the_two_sides_of_an_or_are_two_places():
    def f(x, z):
        w = abs(x)
        while w > 0.5:
            w = w * 0.5 - 0.125
            x = x + 1.0
            if x < z or abs(z) == x:
                break
        return x + z

    agree(f, *[(np.float32(x), np.float32(z)) for x, z in ((2, -2), (7, 0), (2, 2), (7, 9), (-1, 0.5), (3, 4), (9, 0))])


def test_mutable_objects_are_part_of_the_state():
    class Box:
        n = 0

    def set_box(x, box):
        if x > 0:
            box.n = 1
        else:
            box.n = 2
        return x if x > 5 else -x

    def f(x):
        box = Box()
        return set_box(x, box) * box.n

    agree(f, (1.0,), (-1.0,), (6.0,), (-6.0,), (7.0,))


def test_the_truth_of_a_number_is_two_paths_and_not_one_for_each_value():
    def f(n, x):
        total = x * 0
        while n:
            total, n = total + x, n - 1
        return total if x else total - 1

    calls = [(np.int32(n), np.float32(x)) for n, x in ((3, 1), (4, 2), (0, 0), (9, 0), (7, np.nan), (0, -0.0), (5, -1))]
    assert sum(agree(f, *calls)[3:]) == 0
    g = paths(f, max_paths=4)
    for args in calls:
        g(*args)
    assert g.paths().total


def test_a_number_that_starts_at_zero_is_no_power():
    def f(x):
        for k in range(6):
            x = x - k if x > k else x + k
        return x

    agree(f, *[(np.float32(k),) for k in (3, 4, 5, 0, -3, 2, 1, -1, 10)])


def test_sizes_are_guards_on_counts():
    def f(x, n):
        m = int(n)
        return fnp.sum(fnp.reshape(x[: m * 2], (m, 2)), 1), fnp.zeros(m)

    x = np.arange(20.0, dtype=np.float32)
    assert agree(f, *[(x, np.int32(k)) for k in (2, 3, 2, 5, 5, 2)]) == [1, 1, 0, 1, 0, 0]


def test_counts_behind_masks_are_guarded_and_not_the_masks():
    def f(x):
        (i,) = fnp.nonzero(x > 0)
        return x[i], fnp.flatnonzero(x < 0), x[x > 1]

    g = paths(f)
    for v in ([1, -1, 2], [-1, 3, 1], [2, 1, -5], [-1, -1, -2]):
        x = np.array(v, np.float32)
        for a, b in zip(g(x), f(x), strict=True):
            np.testing.assert_array_equal(a, b)
    assert len(str(g.paths()).split("->")) - 1 == 2


def test_counts_of_unique_repeat_and_segments():
    def f(x, n):
        return fnp.unique(x), fnp.repeat(x, n), ft.ops.segment_sum(x, n), fnp.unique(x, return_counts=True)[1]

    x, y = np.array([3, 1, 3], np.float32), np.array([2, 2, 2], np.float32)
    agree(f, *[(a, np.array(n)) for a, n in ((x, [1, 0, 2]), (y, [1, 0, 2]), (x, [2, 1, 2]), (y, [2, 1, 2]))])


def test_conversions_to_python_and_numpy():
    def f(x):
        k = x.argmax().item()
        if float(x[0]) == 1.0:
            return x[k]
        order = np.argsort(np.asarray(x))
        return x[order] * len(x.astype(int).tolist()) + range(9)[x.argmin()]

    agree(f, *[(np.array(v, np.float32),) for v in ([1, 2, 3], [1, 5, 3], [4, 2, 3], [1, 2, 3])])


def test_sorting_and_other_functions_of_python():
    def f(x):
        xs = [x[i] for i in range(3)]
        return sorted(xs)[0], max(xs), float(xs[0] in xs[1:]), sum(v for v in xs if v > 0)

    rows = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    agree(f, *[(row,) for row in rows])


def test_recursion_early_returns_and_other_structures():
    def f(xs):
        for i in range(xs.shape[0]):
            if xs[i] < 0:
                return {"at": i, "v": xs[i]}
        return {"at": -1, "v": fnp.sum(xs), "more": xs}

    agree(f, *[(np.array(v, np.float32),) for v in ([1, 2, 3], [1, -2, 3], [-1, 2, 3], [1, 2, 3])])
    fib = lambda n: n if n < 2 else fib(n - 1) + fib(n - 2)
    agree(fib, (1,), (5,), (5,))


def test_assertions_and_exceptions_of_the_function_are_raised():
    @paths
    def f(x):
        assert x > 0, "x must be positive"
        if x > 100:
            raise KeyError("too large")
        return fnp.log(x)

    assert float(f(1.0)) == 0.0
    for _ in range(2):
        with pytest.raises(AssertionError, match="x must be positive"):
            f(-1.0)
        with pytest.raises(KeyError, match="too large"):
            f(200.0)
    assert float(f(1.0)) == 0.0


def test_a_function_without_guards_is_compiled_as_ever():
    f = paths(lambda x: x + 1)
    assert float(f(1.0)) == 2.0
    assert not f.paths().trees
    assert ft.explain(f)(2.0).count("compile") == 0


# --------------------------------------------------------------------------------------------------------- soundness
def test_a_guard_at_a_rounding_boundary_decides_for_one_path():
    @paths
    def f(x, y):
        z = x * y - 1.0
        return z * 1e7 + 1 if z > 0 else z * 1e7 - 1

    draws = np.random.default_rng(0).uniform(0.5, 2, 200).astype(np.float32)
    results = [float(f(x, np.float32(1) / x)) for x in draws]
    assert all(abs(r) >= 1 for r in results)


def test_an_impure_function_is_refused_by_its_line():
    calls = []

    @paths
    def f(x):
        calls.append(1)
        y = x * len(calls)
        return y if y > 0 else -y

    f(1.0)
    with pytest.raises(errors.ArgumentError, match=r"did not do the same again(.|\n)*test_paths"):
        f(-1.0)


def test_an_impure_function_is_refused_by_the_arguments_of_its_operations():
    calls, square = [], np.arange(4, dtype=np.float32).reshape(2, 2)

    def axis(x):
        calls.append(1)
        y = fnp.sum(x, axis=len(calls) % 2)
        return y if y[0] > 0 else -y

    def body(x):
        calls.append(1)
        y, _ = ft.lax.scan(lambda c, v: (c * len(calls) + v, None), x[0], x)
        return y if y[0] > 0 else -y

    for f in (paths(axis), paths(body)):
        f(square + 1)
        with pytest.raises(errors.ArgumentError, match="did not do the same again"):
            f(-square - 1)


def test_effects_happen_once_and_on_the_path_taken(capfd):
    @paths
    def f(x):
        ft.debug.print("start")
        if x > 0:
            ft.debug.print("positive")
            return x * 2
        ft.debug.print("negative")
        return x * 3

    assert [float(f(v)) for v in (1.0, -1.0, 1.0, -2.0)] == [2.0, -3.0, 2.0, -6.0]
    assert capfd.readouterr().out.split() == ["start", "positive", "start", "negative"] * 2


def test_effects_before_a_guard_on_an_argument_of_numpy(capfd):
    @paths
    def f(x, n):
        ft.debug.print("here")
        return x[: int(n)] if n > 1 else x

    x = np.arange(4, dtype=np.float32)
    for n in (2, 3, 1, 2, 3):
        np.testing.assert_array_equal(f(x, np.int32(n)), x[:n] if n > 1 else x)
    assert capfd.readouterr().out.split() == ["here"] * 5


def test_results_after_effects_are_arrays_with_the_types_of_plain_jit(capfd):
    def f(x, n):
        ft.debug.print("here")
        return (x, 2.0, n) if n > 0 else (x * 2, n, n)

    for x, n in ((np.ones(2, np.float32), 1), (1.0, np.int32(-1)), (np.float64(2), 3), (np.float64(2), -3)):
        got = paths(f)(x, n)
        assert all(isinstance(a, ft.Array) for a in got)
        want = ft.jit(lambda x, n, up=n > 0: (x, 2.0, n) if up else (x * 2, n, n))(x, n)
        assert [ft.typeof(a) for a in got] == [ft.typeof(a) for a in want]
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_loop_behind_a_guard_does_not_run_on_a_guess():
    def f(x):
        if x > 0:
            return ft.lax.while_loop(lambda y: y < 10, lambda y: y * (1 + x), fnp.asarray(1.0))
        return x + 0.0

    agree(f, *[(np.float32(v),) for v in (1.0, -1.0, -0.0, 1.0)])


def test_arguments_are_donated_once_no_guess_can_be_wrong():
    f = paths(lambda x: x + 1 if x[0] > 0 else x - 1, donate_argnums=0)
    for v in (1.0, -1.0):
        f(fnp.full((3,), v))
    for v in (1.0, -1.0, 1.0):
        x = fnp.full((3,), v)
        np.testing.assert_array_equal(f(x), np.full(3, v + np.sign(v)))
        with pytest.raises(errors.DonatedError):
            x + 1


def test_threads():
    f = paths(lambda x: fnp.sin(x) if x > 0 else (fnp.cos(x) if x > -2 else x))
    xs = (np.random.default_rng(0).normal(size=100) * 3).astype(np.float32)
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda v: float(f(v)), xs))
    np.testing.assert_allclose(got, np.where(xs > 0, np.sin(xs), np.where(xs > -2, np.cos(xs), xs)), rtol=1e-5)


def test_wrong_guesses_that_are_known_take_no_long_way(monkeypatch):
    from functorch_like.transforms.paths.calls import Paths

    long_ways, mistaken = [], Paths.mistaken

    def counted(self, *args):
        long_ways.append(args)
        return mistaken(self, *args)

    monkeypatch.setattr(Paths, "mistaken", counted)
    f = paths(lambda x, n: x[: int(n)] * 2)
    x = np.arange(6, dtype=np.float32)
    call = lambda n: np.testing.assert_array_equal(f(x, np.int32(n)), x[:n] * 2)
    for n in (2, 3, 4) * 3:
        call(n)
    before = len(long_ways)
    for n in (2, 3, 4, 4, 2, 3) * 20:  # C++ sometimes switches to another program, and each has its own routes
        call(n)
    assert len(long_ways) - before <= 6
    told = ft.explain(f)(x, np.int32(2)), ft.explain(f)(x, np.int32(3))
    assert sum(t.count("guess") for t in told) == 1
    call(5)  # a path that no route leads to
    for n in (2, 5, 3, 5, 4):
        call(n)
    f.clear_cache()
    call(2)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, np.random.default_rng(0).integers(1, 6, 200)))


def test_static_arguments_keywords_and_closures():
    weight = fnp.arange(30.0)

    @ft.jit(control_flow="paths", static_argnames="mode")
    def f(d, *, mode, k=1.0):
        if d["a"] > k:
            return {"r": d["a"] * (2 if mode == "x" else 3)}
        return {"r": d["b"] + weight[3]}

    for a in (2.0, 0.0, 2.0):
        for mode, times in (("x", 2), ("y", 3)):
            assert float(f({"a": a, "b": 5.0}, mode=mode)["r"]) == (a * times if a > 1 else 8.0)
            assert float(f({"a": a, "b": 5.0}, mode=mode, k=-1.0)["r"]) == a * times


def test_a_setting_turns_paths_on():
    absolute = lambda x: x if x > 0 else -x
    with ft.backends.compilation.flags(control_flow="paths"):
        assert float(ft.jit(absolute)(-2.0)) == 2.0
        with pytest.raises(errors.ConcretizationError):
            ft.jit(absolute, fullgraph=True)(-2.0)
        with pytest.raises(errors.ConcretizationError):
            ft.jit(absolute, control_flow="error")(-2.0)
    with pytest.raises(errors.ConcretizationError, match="control_flow='paths'"):
        ft.jit(absolute)(-2.0)


# ---------------------------------------------------------------------------------------------------- limits, reports
def test_more_paths_than_allowed_are_an_error_with_the_tree():
    f = paths(lambda x: x * float(x), max_paths=3)
    for v in (1.0, 2.0, 3.0):
        f(v)
    with pytest.raises(errors.ArgumentError, match=r"more than 3 paths(.|\n)*float\(f32\[\]\) is 2.0 at test_paths"):
        f(4.0)


def test_a_total_function_inside_of_a_loop_inside_of_paths():
    inner = paths(branch)
    inner.learn(POSITIVE)
    f = paths(lambda x: ft.lax.scan(lambda c, _: (c + inner(x), None), 0.0, None, length=2)[0] if x[0] > 0 else x[0])
    np.testing.assert_allclose([f(POSITIVE), f(-POSITIVE)], [6, -1])


def test_a_long_unrolled_loop_warns():
    def f(x):
        for v in x:
            if v > 0:
                x = x + fnp.sin(v)
        return x

    with pytest.warns(UserWarning, match="loop with 70 guards at test_paths.*count its steps in an array"):
        paths(f)(np.ones(70, np.float32) * -1)


def test_learning_leaves_out_what_raises_or_does_not_end():
    @paths
    def f(x):
        assert x > 0
        n = 0
        while not x > n:
            n += 1
        return x

    assert not f.learn(1.5).total
    assert float(f(2.5)) == 2.5


def test_explain_and_the_tree():
    f = paths(branch)
    told = ft.explain(f)(POSITIVE)
    assert told.count("path") == 1
    assert "followed a path of branch" in str(told)
    told = ft.explain(f)(-POSITIVE)
    assert told.count("guess") == 1
    line = next(iter(f.paths().breaks))
    assert line[1:] == ("bool", 2, 2)
    assert "bool(bool[]) is True at python_paths.py" in str(f.paths())


def test_wrong_options_are_refused():
    with pytest.raises(errors.ArgumentError, match="'error', 'paths' or None"):
        ft.jit(branch, control_flow="guess")
    with pytest.raises(errors.ArgumentError, match="fullgraph"):
        ft.jit(branch, control_flow="paths", fullgraph=True)


def test_weak_types_are_those_of_plain_jit():
    def steps(x):
        n = 0
        while x > 1:
            x, n = x / 2, n + 1
        return x, n

    def branch(x):
        return 1.0 if x > 0 else x

    for f, args in ((steps, (1.0, 9.0, 100.0)), (branch, (1.0, -1.0, 2.0))):
        g = paths(f)
        for x in args:
            assert [a.weak_type for a in ft.tree.leaves(g(x))] == [True] * (2 if f is steps else 1)


def test_long_runs_of_guards_are_printed_in_short():
    @paths
    def f(x):
        for v in x:
            if v > 0:
                x = x + 1
        return x

    f(np.arange(30, dtype=np.float32) - 10)
    lines = str(f.paths()).splitlines()
    assert len(lines) == 10 and lines[6].strip() == "... 23 more" and "30" not in lines[6]
    assert lines[-1].strip().startswith("-> f32[30] (") and "is True" in lines[-2]


def test_a_counter_in_an_array_closes_the_loop():
    @paths
    def collatz(n):
        steps = fnp.int32(0)
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    assert collatz(27) == 111
    with testing.count_compiles() as compiles:
        steps = int(collatz(97)), int(collatz(703))
    assert steps == (118, 170)
    assert compiles.count == 0
