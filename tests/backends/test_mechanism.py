"""Values of settings: global, in blocks, in threads, from the environment, and in the key of jit."""

import asyncio
import threading

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
from functorch_like import backends
from functorch_like.backends import settings
from functorch_like.backends.external_settings import External
from functorch_like.backends.flag_blocks import Group
from functorch_like.backends.settings import SETTINGS, Alias, AtStart, Setting
from functorch_like.backends.validators import boolean, integer, one_of, subset_of
from functorch_like.backends.xla import configuration


class _Trial(Group, name="trial"):
    """Settings that nothing reads."""

    keyed = Setting("a", one_of("a", "b", "c"), "In the key.", changes="nothing")
    other = Setting(1, integer(1, 9, none="no limit"), "Outside of the key.", changes="nothing", in_key=False)
    whole = Setting(False, boolean, "For whole programs.", changes="nothing", program=True)
    parts = Setting((), subset_of("x", "y"), "Parts.", changes="nothing", elsewhere={"cpu": "it is a trial"})
    is_b = Alias(keyed, boolean, "Whether it is b.", read=lambda v: v == "b", write=lambda v: "b" if v else "a")


trial = _Trial()


def test_assignment_is_seen_by_every_thread():
    seen = []
    trial.keyed = "b"
    thread = threading.Thread(target=lambda: seen.append(trial.keyed))
    thread.start()
    thread.join()
    assert seen == ["b"] and _Trial.keyed.source == "code"


def test_a_block_is_seen_by_its_thread_alone():
    seen = []
    with trial.flags(keyed="b", other=3):
        thread = threading.Thread(target=lambda: seen.append((trial.keyed, trial.other)))
        thread.start()
        thread.join()
        assert (trial.keyed, trial.other, _Trial.keyed.source) == ("b", 3, "with-block")
    assert seen == [("a", 1)] and (trial.keyed, trial.other, _Trial.keyed.source) == ("a", 1, "default")


def test_blocks_nest_and_end_with_an_error():
    outer = trial.flags(keyed="b")

    def fails():
        with trial.flags(keyed="c"), outer:
            assert trial.keyed == "b"
            raise ZeroDivisionError

    with outer:
        with pytest.raises(ZeroDivisionError):
            fails()
        assert trial.keyed == "b"
    assert trial.keyed == "a"


def test_assignment_in_a_block_that_sets_the_same_lasts_as_long_as_the_block():
    with trial.flags(keyed="b"):
        trial.keyed = "c"
        assert trial.keyed == "c"
    assert trial.keyed == "a"


def test_assignment_in_a_block_that_sets_another_stays():
    with trial.flags(keyed="b"):
        trial.other = 5
        assert trial.other == 5
    assert trial.other == 5


def test_what_another_thread_assigns_is_seen_when_the_block_ends():
    with trial.flags(other=2):
        thread = threading.Thread(target=lambda: setattr(trial, "keyed", "b"))
        thread.start()
        thread.join()
        assert trial.keyed == "a"
    assert trial.keyed == "b"


def test_a_block_in_a_thread_that_has_adopted_settings_keeps_them():
    """The background thread compiles under the settings of the call, and has blocks of its own meanwhile."""
    seen = []
    read = lambda: seen.append((trial.keyed, trial.other))

    def work(values):
        with configuration.adopted(values):
            with backends.flags({"trial.keyed": "c"}):
                read()
            read()
        read()

    with backends.flags({"trial.keyed": "b", "trial.other": 5}):
        thread = threading.Thread(target=work, args=(configuration.snapshot(),))
    thread.start()
    thread.join()
    assert seen == [("c", 5), ("b", 5), ("a", 1)]


def test_decorator():
    @trial.flags(keyed="b")
    def inside(x):
        return x, trial.keyed

    assert inside(1) == (1, "b") and trial.keyed == "a" and inside.__name__ == "inside"


def test_decorator_refuses_what_runs_after_the_call():
    async def later():
        pass

    def items():
        yield 1

    for fun in (later, items):
        says(refusal(lambda fun=fun: trial.flags(keyed="b")(fun)).head, "generator or coroutine")


def test_a_block_in_a_coroutine_without_await_holds():
    async def inside():
        with trial.flags(keyed="b"):
            return trial.keyed

    assert asyncio.run(inside()) == "b"


def test_several_at_once_by_either_spelling():
    with backends.flags({"trial.keyed": "b", "trial.parts": "y"}, trial_other=None):
        assert (trial.keyed, trial.parts, trial.other) == ("b", ("y",), None)


def test_aliases_are_views():
    assert not trial.is_b
    trial.is_b = True
    assert trial.keyed == "b" and _Trial.is_b.source == "code"
    with backends.flags(trial_is_b=False):
        assert trial.keyed == "a" and not trial.is_b


def test_values_are_canonical():
    trial.keyed = "B"
    trial.parts = ["y", "x"]
    assert trial.keyed == "b" and trial.parts == ("x", "y")
    trial.parts = True
    assert trial.parts == ("x", "y")


@pytest.mark.parametrize(
    ("name", "value"), [("keyed", "aa"), ("keyed", 1), ("other", 0), ("other", 1.5), ("whole", 2), ("parts", "z")]
)
def test_wrong_values_name_the_allowed(name, value):
    message = refusal(lambda: setattr(trial, name, value), ValueError, TypeError)
    says(message.head, f"trial.{name} = {value!r} is not a value of this setting")
    says(message.remedy, "use ")
    refusal(lambda: backends.flags({f"trial.{name}": value}))
    refusal(lambda: trial.flags(**{name: value}))


def test_wrong_values_name_the_nearest():
    says(refusal(lambda: setattr(trial, "keyed", "aa")).head, "did you mean 'a'?")


def test_wrong_names_name_the_nearest():
    says(
        refusal(lambda: setattr(trial, "keyd", 1), AttributeError).head,
        "backends.trial has no setting 'keyd'",
        "'keyed'",
    )
    says(refusal(lambda: trial.keyd, AttributeError).remedy, "keyed, other")
    says(refusal(lambda: trial.flags(keyd=1), AttributeError).head, "'keyed'")
    says(refusal(lambda: backends.flags(trial_keyd=1), AttributeError).head, "no setting 'trial_keyd'")
    says(refusal(lambda: setattr(backends.cpu, "fast_lowrings", 1), AttributeError).head, "'fast_lowerings'")
    assert not hasattr(trial, "keyd")


def test_equal_values_are_one_object_in_the_key():
    before = settings.in_force()
    with trial.flags(keyed="b"):
        block = settings.in_force()
        assert block is not before
    trial.keyed = "b"
    assert settings.in_force() is block
    trial.keyed = "a"
    assert settings.in_force() is before


def test_a_change_compiles_anew_and_the_change_back_does_not():
    f = ft.jit(lambda x: x * 3)
    x = np.ones(3, np.float32)
    f(x)
    with ft.testing.count_traces() as anew, trial.flags(keyed="b"):
        f(x), f(x)
    with ft.testing.count_traces() as again, ft.testing.count_compiles() as compiles:
        f(x)
        with trial.flags(keyed="b"):
            f(x)
    assert (anew.count, again.count, compiles.count) == (1, 0, 0)


def test_threads_compile_and_run_under_their_own_settings():
    f = ft.jit(lambda a: a @ a)
    a = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    plain = np.asarray(f(a))
    results = {}

    def coarse():
        with ft.default_matmul_precision("BF16_BF16_F32"):
            inside.set()
            assert done.wait(60)
            results["coarse"] = np.asarray(f(a))

    inside, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=coarse)
    thread.start()
    assert inside.wait(60)
    results["plain"] = np.asarray(f(a))  # while the other thread is in its block
    done.set()
    thread.join()
    np.testing.assert_array_equal(results["plain"], plain)
    assert np.abs(results["coarse"] - plain).max() > 1e-3


def test_the_same_value_by_assignment_and_by_block_is_one_program():
    f = ft.jit(lambda x: x * 11)
    x = np.ones(3, np.float32)
    with trial.flags(keyed="c"):
        f(x)
    trial.keyed = "c"
    with ft.testing.count_traces() as traces:
        f(x)
    assert traces.count == 0


def test_a_setting_outside_of_the_key_compiles_nothing():
    f = ft.jit(lambda x: x * 5)
    x = ft.numpy.ones(3)
    f(x)
    counts = ft.testing.Counted()
    with trial.flags(other=4):
        f(x)
    assert counts.count == 0


def test_what_holds_for_whole_programs_is_refused_in_a_traced_function():
    def block(x):
        with trial.flags(whole=True):
            return x

    def assign(x):
        trial.whole = True
        return x

    for fun in (block, assign):
        message = refusal(lambda fun=fun: ft.jit(fun)(1.0))
        says(message.head, "trial.whole is changed inside a function that is being traced")
        says(message.remedy, "around the call")
    with trial.flags(whole=True):
        assert ft.jit(lambda x: x)(1.0) == 1.0


def test_environment_variables(run):
    text = """
        import functorch_like as ft
        s = ft.backends.settings.find("cpu.fast_lowerings")
        print(s.value, s.source)
    """
    assert run(text, FT_CPU_FAST_LOWERINGS="0") == "False environment"
    assert run(text, FT_CPU_FAST_LOWERINGS="") == "True default"


def test_wrong_environment_variables(run):
    told = run("import functorch_like", fails=True, FT_CPU_FAST_LOWERINGS="-a,b")
    says(told, "the environment variable FT_CPU_FAST_LOWERINGS='-a,b' is not a value", "use True (all)")


def test_groups_show_their_settings():
    assert repr(trial).splitlines()[0] == "backends.trial:" and "trial.keyed = 'a'" in repr(trial)
    assert "fast_lowerings" in dir(backends.cpu)


def _other(setting):
    """Return a valid value other than the default, for any kind of setting; None if no candidate is valid."""
    for value in (True, False, *setting.kind.names, 7):
        try:
            if setting.checked(value) != setting.default:
                return value
        except ft.FtError:
            continue
    return None


KEYED = [
    name
    for name, s in SETTINGS.items()
    if s.in_key and not isinstance(s, (Alias, AtStart, External)) and _other(s) is not None
]


@pytest.mark.parametrize("name", KEYED)
def test_every_setting_of_programs_recompiles_once_in_its_thread_alone(name):
    backends.compilation.tiers = "auto"  # the users' default; tests otherwise get a tier by their name
    other, seen = _other(SETTINGS[name]), []
    f, x = ft.jit(lambda x: x * 13), np.ones(3, np.float32)
    f(x)
    with ft.testing.count_traces() as anew, backends.flags({name: other}):
        f(x), f(x)
        thread = threading.Thread(target=lambda: seen.append(SETTINGS[name].value))
        thread.start()
        thread.join()
    with ft.testing.count_traces() as back, ft.testing.count_compiles() as compiles:
        f(x)
        with backends.flags({name: other}):
            f(x)
    assert (anew.count, back.count, compiles.count) == (1, 0, 0)
    assert seen == [SETTINGS[name].default] == [SETTINGS[name].value]
