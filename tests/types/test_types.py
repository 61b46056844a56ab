"""Type checkers report no error in correct programs of users, and each mistake in another program."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORRECT = ("correct.py", "lambdas.py")
WRONG = re.compile(r"  # wrong: (.*)")


def pyright(folder, mode):
    """Return pyright's errors in the programs, outside the repository, as (file, line, rule, message)."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    for name in (*CORRECT, "mistakes.py"):
        (folder / name).write_text((HERE / name).read_text())
    settings = {"typeCheckingMode": mode, "include": ["."], "reportUnusedExpression": "none"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-P", "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = json.loads(run.stdout)["generalDiagnostics"]
    assert found, run.stdout + run.stderr  # there are at least the mistakes
    return {
        (Path(d["file"]).name, d["range"]["start"]["line"] + 1, d.get("rule", ""), d["message"])
        for d in found
        if d["severity"] == "error"
    }


@pytest.mark.parametrize("mode", ["basic", "strict"])
def test_pyright(mode, tmp_path):
    found = pyright(tmp_path, mode)
    assert [d for d in found if d[0] == "correct.py"] == []
    assert [d for d in found if d[0] == "lambdas.py" and not d[2].startswith("reportUnknown")] == []
    lines = (HERE / "mistakes.py").read_text().splitlines()
    wrong = {(i, rule) for i, line in enumerate(lines, 1) if (m := WRONG.search(line)) for rule in m[1].split(", ")}
    seen = {
        (line, rule) for file, line, rule, _ in found if file == "mistakes.py" and not rule.startswith("reportUnknown")
    }
    assert seen == wrong


@pytest.mark.parametrize("name", CORRECT)
def test_the_correct_programs_run(name):
    run = subprocess.run([sys.executable, "-P", str(HERE / name)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_mypy(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    (tmp_path / "correct.py").write_text((HERE / "correct.py").read_text())
    command = [sys.executable, "-P", "-m", "mypy", "--strict", "--python-executable", sys.executable, "correct.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
