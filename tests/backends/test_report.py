"""Reports about settings."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.markup import page
from support.messages import refusal, says

import functorch_like as ft
from functorch_like import backends
from functorch_like.backends.__main__ import main
from functorch_like.backends.external_settings import External
from functorch_like.backends.report import bug_report


def test_describe_names_value_source_and_effect():
    with backends.flags(cpu_fast_lowerings=False):
        rows = {row[0]: row for row in backends.describe().rows}
    assert rows["cpu.fast_lowerings"][1:3] == ("False", "with-block")
    assert rows["FT_CPU_ASYNC"][2] == "default"
    assert set(rows) == set(backends.settings.SETTINGS)
    for name, row in rows.items():
        assert row[4] == "yes" or row[4].startswith("no: "), name
        assert backends.settings.SETTINGS[name].__doc__, name


def test_what_is_kept_elsewhere_is_shown_and_not_set():
    with ft.disable_jit():
        rows = {row[0]: row for row in backends.describe().rows}
    assert rows["disable_jit"][1:3] == ("True", "code") and rows["default_float"][1] == "'float32'"
    setting = backends.settings.find("FT_CPU_ASYNC")
    says(refusal(lambda: setting.set("1")).remedy, "the environment variable FT_CPU_ASYNC, before the process starts")
    says(refusal(lambda: backends.flags(default_float="float64")).remedy, "ft.set_default_dtype")


def test_describe_as_text_and_table():
    shown = backends.describe()
    lines = str(shown).splitlines()
    assert lines[0].split() == ["setting", "value", "from", "effect", "here"]
    rows = lines[1 : lines.index("")]
    assert len(rows) == len(shown.rows) and str(shown) == repr(shown)
    # The reasons why settings have no effect are listed below the table, each once.
    reasons = dict(
        re.fullmatch(r"(no \(\d+\)) +(.*)", line).groups() for line in lines[lines.index("") + 1 :] if line[0] == "n"
    )
    for line, row in zip(rows, shown.rows, strict=True):
        mark = line[line.index("no (") :] if "no (" in line else ""
        assert row[4].startswith(f"no: {reasons[mark]}") if mark else row[4] == "yes"
    table = page(shown)
    assert table.tags.count("tr") == len(rows) + 1 + len(reasons) and "cpu.fast_lowerings" in table.text
    assert all(table.text.count(f"{mark}{reason[:30]}") == 1 for mark, reason in reasons.items())
    assert "cuda.<wbr>matmul.<wbr>allow_<wbr>bf16_" in shown._repr_html_()  # long names fit narrow pages


def test_describe_some_or_one():
    assert {row[0] for row in backends.describe("cudnn").rows} == {
        name for name in backends.settings.SETTINGS if name.startswith("cudnn.")
    }
    told = str(backends.describe("cuda.matmul.fp32_precision"))
    says(
        told, "cuda.matmul.fp32_precision\n  Precision of products", "value: 'none' (from: default)",
        "takes: one of 'none'",
        "default: 'none'", "environment: FT_CUDA_MATMUL_FP32_PRECISION", "changes: StableHLO: precision_config",
        "effect here: no: it is about GPUs",
    )  # fmt: skip
    # For one setting, a notebook shows the printed text.
    shown = page(backends.describe("cuda.matmul.fp32_precision")).text
    marks = re.compile(r"[\s:]+")
    assert marks.sub("", shown) == marks.sub("", told)
    says(refusal(lambda: backends.describe("cuda.matmull")).head, "no setting 'cuda.matmull'", "did you mean")


def test_completion_offers_settings_and_no_tools():
    for module, shown in (
        (backends, {"cuda", "fp32_precision", "flags", "describe", "use_deterministic_algorithms"}),
        (backends.cuda, {"matmul", "preallocate", "enable_flash_sdp", "cufft_plan_cache", "SDPAParams"}),
        (backends.xla, {"options", "verbose", "fast_math"}),
    ):
        names = {name for name in dir(module) if not name.startswith("_")}
        assert shown <= names
        assert not names & {"Any", "NamedTuple", "Kind", "Group", "Module", "annotations", "one_of", "ArgumentError"}


def test_environment_variables_that_say_nothing_are_refused():
    code = "import functorch_like as ft; print(ft.backends.describe('debug.nans').rows)"
    for name, remedy in (
        ("FT_DEBUG_NANS", "True or False"),
        ("FT_CPU_ASYNC", "True or False"),
        ("FT_TRACEBACK", "full"),
    ):
        environment = {**os.environ, name: "maybe"}
        made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert made.returncode
        says(made.stderr, f"the environment variable {name}='maybe' is not a value of this setting", remedy)
    made = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "FT_DEBUG_NANS": "true"}, capture_output=True
    )
    assert b"'True', 'environment'" in made.stdout


def test_the_page_of_settings_is_up_to_date(tmp_path, capsys):
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    if not page.is_file():
        pytest.skip("the tests run without the source tree")
    # In a separate process, because test_mechanism declares settings in this one.
    subprocess.run([sys.executable, "-m", "functorch_like.backends", "--markdown", "made.md"], cwd=tmp_path, check=True)
    made = (tmp_path / "made.md").read_text(encoding="utf-8")
    assert made == page.read_text(encoding="utf-8"), (
        "run: python -m functorch_like.backends --markdown docs/settings.md"
    )
    for name, setting in backends.settings.SETTINGS.items():
        if not name.startswith("trial."):  # declared by test_mechanism
            says(made, f"### {name}\n", f"- environment: `{setting.env}`" if setting.env else "")
    assert main(["--markdown"]) == 2 and "usage" in capsys.readouterr().err


def test_every_setting_is_tested():
    tests = Path(__file__).parents[1]
    text = "\n".join(path.read_text() for path in tests.rglob("test_*.py"))
    declared = [name for name, s in backends.settings.SETTINGS.items() if not isinstance(s, External)]
    untested = [name for name in declared if name.rpartition(".")[2] not in text]
    assert not untested, f"no test names {untested}"


def test_the_report_for_bugs_has_whole_values():
    chosen = {"xla_cpu_prefer_vector_width": 256, "xla_cpu_enable_fast_min_max": True}
    with backends.xla.options(**chosen):
        assert all(f"('{name}', {value})" in bug_report() for name, value in chosen.items())


def test_the_report_for_bugs():
    done = subprocess.run(
        [sys.executable, "-m", "functorch_like.backends"], capture_output=True, text=True, timeout=120,
        env={**os.environ, "FT_CUDA_MATMUL_ALOW_TF32": "1"},
    )  # fmt: skip
    says(done.stdout, "FT_CUDA_MATMUL_ALOW_TF32: 1  (no setting reads this; did you mean 'FT_CUDA_MATMUL_ALLOW_TF32'?)")
    assert done.returncode == 0, done.stderr
    for part in ("jaxlib: ", "numpy: ", "Python: ", "cpu:0", "cores: ", "directory: ", "cpu.fast_lowerings  "):
        assert part in done.stdout, part
