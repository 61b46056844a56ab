"""The code of docs/sharding.md runs on eight devices."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "sharding.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="the tests run without the source tree")
def test_the_code_of_the_guide_runs(capsys):
    namespace: dict = {}
    text = PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, PAGE.name, "exec"), namespace)
    picture = "".join(f"    {line}\n" for line in capsys.readouterr().out.splitlines())
    assert picture in text
