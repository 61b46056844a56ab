"""The example of digits reaches its accuracy, prints what it should, and takes sensible options."""

import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import functorch_like as ft
from functorch_like.backends.xla.guard import jaxlib_version
from functorch_like.examples import data, welcome
from functorch_like.examples import digits as demo
from functorch_like.examples.digits import Options, main, parse, run
from functorch_like.examples.report import Report


@pytest.fixture(scope="module")
def quick(digits):
    out = io.StringIO()
    return run(parse(["--quick"]), digits, Report(out)), out.getvalue()


def test_accuracy(quick):
    outcome, _ = quick
    assert outcome.accuracy > 0.95
    assert outcome.ensemble_accuracy > 0.95
    assert len(outcome.member_accuracies) == 2


def test_the_member_with_the_same_seed_is_the_network_trained_alone(quick):
    outcome, _ = quick
    assert outcome.member_accuracies[0] == pytest.approx(outcome.accuracy, abs=0.006)  # two images


def test_power_iteration_settles(quick):
    *_, before, last = quick[0].curvatures
    assert last > 0
    assert abs(last - before) < 0.01 * last


def test_report(quick):
    outcome, text = quick
    for chapter in ("Training", "Per-sample gradients", "Curvature", "Ensemble", "Costs"):
        assert f"\n{chapter} " in text
    assert f"test accuracy {outcome.accuracy:.2%}" in text
    assert "\033" not in text and "\r" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_costs(quick):
    outcome, text = quick
    assert [c.name for c in outcome.costs] == re.findall(
        r"^([A-Za-z][\w -]+?)  +\d+  +[\d.]+ [mu]?s", text, re.MULTILINE
    )
    for cost in outcome.costs:
        assert min(cost.trace, cost.lower, cost.compile, cost.run) > 0
        assert cost.operations > 5


def test_everything_is_decided_by_the_seed(digits):
    short = Options(model="mlp", epochs=1, members=1)
    first, again = (run(short, digits, Report(io.StringIO())) for _ in range(2))
    assert first.accuracy == again.accuracy
    np.testing.assert_array_equal(first.norms, again.norms)
    other = run(short._replace(seed=1), data.load(1), Report(io.StringIO()))
    assert not np.array_equal(first.norms, other.norms)


# ------------------------------------------------------------------------------------------------------ command line
@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], Options(epochs=12)),
        (["--quick"], Options(epochs=6, members=2)),
        (["--model", "mlp"], Options("mlp", 40)),
        (["--quick", "--model", "mlp"], Options("mlp", 15, 2)),
        (["--quick", "--epochs", "7", "--model", "mlp"], Options("mlp", 7, 2)),
        (["--members", "3", "--seed", "9"], Options(members=3, seed=9)),
    ],
)
def test_options(arguments, options):
    assert parse(arguments) == options


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--epochs", "0"], "expected at least 1, got 0"),
        (["--members", "-2"], "expected"),
        (["--seed", "pi"], "expected a number from 0 to 2147483647, got 'pi'"),
        (["--model", "tree"], "invalid choice"),
    ],
)
def test_bad_options(arguments, complaint, capsys):
    with pytest.raises(SystemExit) as e:
        parse(arguments)
    assert e.value.code == 2
    assert complaint in capsys.readouterr().err


def test_help(capsys):
    with pytest.raises(SystemExit):
        parse(["--help"])
    text = capsys.readouterr().out
    assert text.startswith(f"functorch_like {ft.__version__}")
    assert "\nusage: python -m functorch_like" in text
    for option in ("--model", "--epochs", "--members", "--seed", "--quick"):
        assert option in text


def test_the_welcome_names_versions_devices_and_what_to_read(capsys):
    with pytest.raises(SystemExit):
        parse(["--help"])
    text = capsys.readouterr().out
    for word in (np.__version__, jaxlib_version(), str(ft.devices()[0]), "self-check  passed", *READ):
        assert word in text
    assert max(map(len, text.splitlines())) <= 120


#: Files that the welcome names. A wheel has none of them.
READ = ("README.md", "notebooks/quickstart.ipynb", "notebooks/README.md", "docs/differences.md")


def test_what_the_welcome_names_is_there():
    root = Path(__file__).parents[2]
    assert [name for name in READ if name in welcome.READ_ON] == list(READ)
    if (root / "docs").is_dir():
        assert [name for name in READ if not (root / name).exists()] == []


def test_a_self_check_that_fails_is_reported(monkeypatch):
    monkeypatch.setattr(ft, "vmap", lambda f: lambda x: x)
    assert welcome.self_check().startswith("FAILED: jit(vmap(grad(sin))) differs from cos by")

    def broken(f):
        raise OSError("no library")

    monkeypatch.setattr(ft, "jit", broken)
    assert welcome.self_check() == "FAILED: OSError: no library"


# --------------------------------------------------------------------------------------------------- start of the run
def test_the_plan_is_printed_first(monkeypatch, capsys):
    pytest.importorskip("sklearn")

    def load(seed):
        raise KeyboardInterrupt

    monkeypatch.setattr(data, "load", load)
    assert main(["--quick"]) == 130
    said = capsys.readouterr()
    assert "First a conv net learns to read digits, in 6 passes" in said.out
    assert "s of processor time" in said.out
    assert "Stopped." in said.err and "Traceback" not in said.err


def test_compiling_is_reported_before_and_after(quick):
    text = quick[1]
    for name in ("training step", "per-sample gradients", "ensemble step"):
        before, after = text.index(f"compiling: {name} ..."), text.index(f": {name}, ")
        assert before < after


def test_the_result_comes_before_the_tour(quick):
    text = quick[1]
    assert text.index("held-out digits are read right") < text.index("\nPer-sample gradients ")


def test_a_network_without_mistakes_shows_one_digit(digits):
    out = io.StringIO()
    demo.show_readings(Report(out), np.eye(10)[digits.test_labels], digits)
    assert out.getvalue().startswith("For example:\n")
    assert out.getvalue().count("read as") == 1


# ---------------------------------------------------------------------------------------------- without scikit-learn
ABSENT = "import sys; sys.modules['sklearn'] = None; sys.modules['sklearn.datasets'] = None; "


def test_without_scikit_learn(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert main([]) == 1
    said = capsys.readouterr()
    assert not said.out
    assert 'python -m pip install "scikit-learn>=1.5"' in said.err
    assert "functorch_like[digits]" in said.err
    assert "Traceback" not in said.err


def test_without_scikit_learn_from_a_shell():
    code = ABSENT + "import runpy; runpy.run_module('functorch_like', run_name='__main__', alter_sys=True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert not done.stdout
    assert "pip install" in done.stderr and "Traceback" not in done.stderr


def test_a_broken_scikit_learn_is_not_called_missing(tmp_path):
    package = tmp_path / "sklearn"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "datasets.py").write_text("import a_module_it_needs")
    # In a process of its own: a false sklearn in sys.modules would outlive the test.
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from functorch_like.examples import data; data.load()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: No module named 'a_module_it_needs'" in done.stderr
    assert "pip install" not in done.stderr


# ------------------------------------------------------------------------------------------------------------- data
def test_split(digits):
    assert digits.train_images.shape == (1437, 8, 8, 1) and digits.test_images.shape == (360, 8, 8, 1)
    assert digits.train_images.dtype == np.float32 and digits.train_labels.dtype == np.int32
    assert digits.train_images.min() == 0 and digits.train_images.max() == 1
    assert set(digits.test_labels) == set(range(10))


def test_no_image_is_on_both_sides(digits):
    rows = lambda images: {image.tobytes() for image in images}
    assert len(rows(digits.train_images) | rows(digits.test_images)) == 1797


def test_the_seed_decides_the_split(digits):
    for ours, again in zip(digits, data.load(0), strict=True):
        np.testing.assert_array_equal(ours, again)
    assert not np.array_equal(data.load(1).test_labels, digits.test_labels)
