"""Random programs against NumPy in float64; `python -m functorch_like.testing.nightly` runs many."""

# Other compile options: all those that the package may choose are compared.

import json

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import core
from functorch_like.backends.xla import library_check, option_sets
from functorch_like.compiler.lower import lower
from functorch_like.primitives.base.lowering import Lowering, alternatives_of
from functorch_like.testing import differential, long_programs, lowering_programs, nightly, product_programs
from functorch_like.testing.choices import Choices, shrink
from functorch_like.testing.error_bars import Meaning, with_bars
from functorch_like.testing.source_programs import Argument, Program

BLOCK = 10
#: Number of programs of each kind that every build checks, and of ways to compile them besides the default. Every
#: other program is compiled without LLVM's optimisations, as in the quick tier.
SAMPLES = {"options": (200, 1), "lowerings": (80, None), "steps": (60, None)}
#: Options under which programs were once compiled: nothing keeps broadcasts from YNNPACK.
UNGUARDED = differential.Candidate(
    "fusions of products", option_sets.ynn("REDUCE", "DOT"), settings={"cpu.fast_lowerings": "-repeated_operands"}
)


@pytest.mark.parametrize(
    ("kind", "start"), [(kind, k) for kind, (count, _) in SAMPLES.items() for k in range(0, count, BLOCK)]
)
def test_programs_mean_the_same_compiled(kind, start):
    found = []
    for number in range(start, start + BLOCK):
        try:
            effort = nightly.Effort(ways=SAMPLES[kind][1], quick=number % 2 == 1)
            found.append(nightly.examine(kind, 0, number, effort, attempts=40))
        except differential.Refused:
            continue
    wrong = [f"{f.number}: {'; '.join(f.messages)}\n{f.script}" for f in found if f is not None]
    assert not wrong, "\n\n".join(wrong)


# -------------------------------------------------------------------------------------------------- finding power
MISREAD = {
    "ones": Program([Argument("a", (16, 8), "F")], ["return a @ fnp.ones((8, 5), F)"], "float32", "bfloat16", []),
    "scalar": Program(
        [Argument("a", (16, 8), "F"), Argument("s", (), "F")],
        ["return a @ fnp.full((8, 5), s)"],
        "float32", "bfloat16", [],
    ),
}  # fmt: skip


@pytest.fixture
def unguarded(monkeypatch):
    monkeypatch.setattr(library_check, "flaw_of", lambda inner: None)
    with ft.backends.cache.flags(enabled=False):
        yield


@pytest.mark.parametrize("name", MISREAD)
def test_broadcasts_that_a_library_misreads_are_found(unguarded, name):
    assert differential.check(MISREAD[name], [UNGUARDED])


def test_drawn_programs_find_what_a_library_misreads(unguarded):
    wrong = 0
    for k in range(45, 54):
        drawer = product_programs.Drawer(Choices(f"pw {k}"), "float32", "bfloat16")
        product = drawer.matmul(drawer.w.argument(drawer.shape(2, 4)))
        wrong += bool(differential.check(drawer.w.program(product.name), [UNGUARDED], differential.QUICK))
    assert wrong > 1


def test_a_wrong_derivative_rule_is_found():
    lines = [
        "g = ft.custom_jvp(lambda x: fnp.sin(x))",
        "g.defjvp(lambda p, t: (fnp.sin(p[0]), 1.01 * fnp.cos(p[0]) * t[0]))",
        "return g(a)",
    ]
    program = Program([Argument("a", (3,), "F")], lines, "float32", "bfloat16", [])
    assert any("differences" in m for m in nightly.KINDS["steps"].check(program, 1, nightly.Effort()))


def test_a_wrong_batch_rule_is_found(monkeypatch):
    row = core.TABLE["cumsum"]

    def along_the_mapped_axis(axis, args, dims, /, **params):
        return row(*args, **{**params, "axis": dims[0]}), dims[0]

    monkeypatch.setitem(vars(row), "batch", along_the_mapped_axis)
    program = Program([Argument("a", (3,), "F")], ["return fnp.cumsum(a)"], "float64", "bfloat16", [])
    assert any(m.startswith("vmap") for m in nightly.KINDS["steps"].check(program, 1, nightly.Effort()))


def test_all_fast_lowerings_are_taken_by_what_is_drawn(monkeypatch):
    taken = set()
    pick = Lowering.pick

    def watched(self, *args):
        found = pick(self, *args)
        taken.add((id(self), found.name if found else None))
        return found

    monkeypatch.setattr(Lowering, "pick", watched)
    # A standard form may be missed: some alternatives take float32 of any size and leave it other dtypes only.
    wanted = {
        (id(row.lower), a.name): row.name for row in core.TABLE.values() for a in alternatives_of(row.lower) if a.here
    }
    for k in range(1500):
        program = lowering_programs.draw(Choices(f"lowerings 0 {k}"))
        assert lower(differential.staged(program.function(), program.values()).jaxpr, name="f").module is not None
        if wanted.keys() <= taken:
            break
    assert [(row, name) for (key, name), row in wanted.items() if (key, name) not in taken] == []


def test_long_programs_hold_what_they_should():
    sources = [long_programs.draw(Choices(k)).source for k in range(80)]
    words = ("lax.scan", "while_loop", "fori_loop", "lax.cond", "lax.switch", "custom_jvp", "custom_vjp", "ft.vmap",
             "ft.grad", "ft.jit", "ft.checkpoint", "conv_general_dilated", "dynamic_slice", ".at[", "ft.jvp", "ft.vjp",
             "linearize", "hessian", "@ ", "'int32'", "1j", "lax.map", "argsort")  # fmt: skip
    assert [w for w in words if not any(w in source for source in sources)] == []
    deep = max(line.index("def ") // 4 for source in sources for line in source.splitlines() if "def f" in line)
    assert deep == long_programs.DEPTH
    assert max(source.count(" = ") for source in sources) > 40


# ------------------------------------------------------------------------------------------------------- the parts
def test_programs_are_the_same_in_each_process():
    for kind in nightly.KINDS.values():
        assert kind.draw(Choices("x 1")).source == kind.draw(Choices("x 1")).source
        drawn = kind.draw(Choices("x 2"))
        assert kind.draw(Choices(replay=drawn.made)).source == drawn.source


def test_shrinking_ends_at_what_matters():
    assert shrink(list(range(40)), lambda made: 17 in made) == [17]
    assert shrink([9, 9, 9], lambda made: len(made) == 3 and made[1] >= 4) == [0, 4, 0]


def test_error_bars_know_cancellation():
    def f(x):
        return (x + 1e6) - 1e6, x * 2

    x = np.array([0.25, 0.5])
    (_, cancelled), (_, plain) = with_bars(*_staged(f, x), eps=1e-7)
    assert (cancelled > 1e-3).all() and (plain < 1e-5).all()


def test_equations_without_results_have_bars():
    def f(x):
        ft.jit(lambda y: ())(x)
        return x * 2

    ((exact, bars),) = with_bars(*_staged(f, np.array([0.25, 0.5])), eps=1e-7)
    np.testing.assert_array_equal(exact, [0.5, 1.0])
    assert (bars < 1e-5).all()


@pytest.mark.parametrize("wrap", [
    ft.checkpoint, ft.jit, lambda f: lambda x: ft.lax.fori_loop(0, 1, lambda k, y: f(y), x),
    lambda f: lambda x: ft.lax.cond(x[0] > 0, f, f, x),
], ids=["checkpoint", "jit", "fori_loop", "cond"])  # fmt: skip
def test_error_bars_know_what_rounding_does_inside_of_bodies(wrap):
    # 1 - tanh(x)**2 is 1e-9 at 11, and rounding tanh(x) to float32 moves it by 1e-7.
    slope = wrap(lambda x: 1 - fnp.square(fnp.tanh(x)))
    ((exact, bars),) = with_bars(*_staged(slope, np.array([11.0, 11.5])), eps=1.2e-7)
    assert (exact < 2e-9).all() and (bars > 2e-8).all()


def test_error_bars_keep_a_real_part_beside_an_infinite_one():
    real = lambda x, y: ft.lax.real(ft.lax.complex(x, y))
    ((exact, bars),) = with_bars(*_staged(real, np.array([1.0, 2.0]), np.array([np.inf, 3.0])), eps=1e-7)
    np.testing.assert_array_equal(exact, [1, 2])
    assert (bars < 1e-5).all()


def test_error_bars_know_that_differences_may_become_zero():
    # 1 - tanh(16.5) is 1e-14, but 0 in float32.
    difference = lambda x: fnp.sign(1 - fnp.tanh(x))
    for x, moves in ((16.5, True), (0.5, False)):
        ((exact, bars),) = with_bars(*_staged(difference, np.array([x])), eps=1.2e-7)
        assert exact == 1 and (bars >= 1) == moves


def _staged(f, *xs):
    made = differential.staged(f, list(xs))
    return made.jaxpr, made.args


def test_error_bars_know_products_of_rounding_errors():
    def square(x):  # the variance is 0
        return fnp.square(fnp.var(fnp.broadcast_to(x, (48, 2)), axis=0))

    ((exact, bars),) = with_bars(*_staged(square, np.array([0.3, 1.7])), eps=1e-7)
    assert (exact < 1e-50).all() and (bars >= 1e-14).all() and (bars < 1e-12).all()


@pytest.mark.parametrize(("gap", "near"), [(4e-7, True), (1e-5, False)])
def test_the_order_of_close_numbers_is_left_to_rounding(gap, near):
    exact = Meaning(*_staged(fnp.argsort, np.array([1.0, 1.0 + gap, 3.0])), eps=1.2e-7)
    assert not exact.bars[0].any()  # three draws all miss it
    found = list(differential.differences([np.array([1, 0, 2])], exact))
    assert found == [] if near else "2 of 3" in found[0]
    assert "1 of 3" in next(differential.differences([np.array([0, 1, 1])], exact))


def test_error_bars_know_derivatives_of_medians_of_equal_numbers():
    lines = ["return fnp.sin(fnp.median(fnp.tanh(fnp.broadcast_to(11.0 + fnp.sum(a), (3, 3)))))"]
    program = Program([Argument("a", (3,), "F")], lines, "float32", "bfloat16", [])
    assert nightly.KINDS["steps"].check(program, 1, nightly.Effort(quick=True)) == []


def test_differences_across_a_tie_are_no_derivative():
    a = Argument("a", (), "F")
    value = float(Program([a], ["return a"], "float64", "bfloat16", []).values()[0])
    tie = [f"return lax.top_k(fnp.stack([2 * a, a + {value!r}]), 1)[0]"]
    program = Program([a], tie, "float64", "bfloat16", [])
    assert nightly.KINDS["steps"].check(program, 0, nightly.Effort(quick=True)) == []


def test_results_are_held_against_the_bars():
    exact, bars = np.array([1.0, np.inf, 2.0]), np.array([1e-7, 1e-7, np.inf])
    assert differential.disagreement(np.float32([1.0, 5.0, 7.0]), exact, bars) is None
    assert "1 of 3" in differential.disagreement(np.float32([1.1, 5.0, 7.0]), exact, bars)
    assert "shape" in differential.disagreement(np.ones(2), exact, bars)
    assert "1 of 2" in differential.disagreement(np.array([1, 2]), np.array([1, 3]), np.zeros(2))


def test_a_script_runs_what_was_checked(capsys):
    program = product_programs.draw(Choices("script 0"))
    names = {}
    exec(compile(program.script, "<script>", "exec"), names)
    assert capsys.readouterr().out == f"{ft.jit(names['f'])(*names['args'])}\n"


def test_an_interrupted_run_goes_on(tmp_path, capsys):
    record = tmp_path / "record"
    command = ["options", "--count", "2", "--ways", "0", "--quick", "--record", str(record)]
    assert nightly.main(command) == 0
    assert "2 programs" in capsys.readouterr().out and len(record.read_text().splitlines()) == 1
    block = json.loads(record.read_text())
    assert block["checked"] == 2 and not block["wrong"]
    assert nightly.main(command) == 0
    assert len(record.read_text().splitlines()) == 1


def test_a_record_holds_what_was_done(tmp_path, capsys):
    record = tmp_path / "record"
    block = {"kind": "steps", "seed": 3, "ways": 1, "quick": True, "start": 0, "stop": 250, "checked": 250,
             "refused": 7, "wrong": [], "seconds": 60.0, "cpu": 25.0}  # fmt: skip
    other = {**block, "quick": False}
    wrong = {**block, "start": 250, "stop": 500, "wrong": [{"number": 251, "messages": ["no"], "script": ""}]}
    record.write_text("".join(f"{json.dumps(b)}\n" for b in (block, other, wrong)))
    command = ["steps", "--seed", "3", "--ways", "1", "--quick", "--record", str(record), "--totals"]
    assert nightly.main(command) == 1
    assert capsys.readouterr().out == "steps: 500 programs, 14 refused, 1 wrong, 120 s, 50 s of CPU, 0.100 s each\n"
    assert [*nightly._runs([0, 1, 2, 7, 8, 249, 250, 251])] == [
        range(3), range(7, 9), range(249, 250), range(250, 252)
    ]  # fmt: skip


def test_a_block_goes_on_after_a_program_that_kills_its_process(monkeypatch):
    begun = []

    def dies_of_some(kind, seed, numbers, effort):
        lines = []
        for number in numbers:
            begun.append(number)
            lines.append({"checking": number, "cpu": 0.5})
            if number in (1, 2, 4):
                return nightly._Ended(lines, -11, "a signal")
        return nightly._Ended(lines, 0, "")

    monkeypatch.setattr(nightly, "_in_a_process", dies_of_some)
    block = nightly._run_block("options", 0, range(5), nightly.Effort())
    assert begun == [0, 1, 2, 3, 4] and block["checked"] == 5
    assert [w["number"] for w in block["wrong"]] == [1, 2, 4]
    assert all(w["messages"] == ["died (-11): a signal"] and "ft.jit(f)" in w["script"] for w in block["wrong"])


def test_a_process_that_begins_no_program_is_an_error():
    effort = nightly.Effort(ways=0, quick=True)
    ended = nightly._in_a_process("no such kind", 0, range(2), effort)
    assert ended.status and not ended.lines and "no such kind" in ended.errors
    with pytest.raises(RuntimeError, match="no program was begun"):
        nightly._run_block("no such kind", 0, range(2), effort)


@pytest.mark.parametrize("off", [1e-3, np.nan])
def test_results_far_from_exact_ones_meet_their_bars(off):
    def sums(x):
        return fnp.sum(x * x, axis=0), fnp.max(x)

    x = np.linspace(0.1, 1.0, 12).reshape(4, 3)
    meaning = Meaning(*_staged(sums, x), eps=1.2e-7)
    right = [np.float32(v) for v in meaning.exact]
    assert not [*differential.differences(right, meaning)] and "bars" not in vars(meaning)
    wrong = [right[0] + np.float32([0, off, 0]), right[1]]
    assert ["1 of 3" in m for m in differential.differences(wrong, meaning)] == [True]


def test_what_needs_no_bars_is_within_them():
    programs = [product_programs.draw(Choices(f"bars {k}")) for k in range(20)]
    for program in programs:
        wide = differential.staged(program.function(wide=True), differential.widened(program.values()))
        meaning = Meaning(wide.jaxpr, wide.args, 1.2e-7)
        for exact, bars in zip(meaning.exact, meaning.bars, strict=True):
            off = exact * (1 + 9 * meaning.eps)
            assert differential._is_close(off, exact, meaning.eps)
            assert differential.disagreement(off, exact, bars) is None
