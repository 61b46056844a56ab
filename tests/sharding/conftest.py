"""Tests on eight CPU devices: each file runs in a process of its own, which has them.

The number of devices is settled when a process starts. A process with eight of them, as by `FT_CPU_DEVICES=8 pytest
tests/sharding/test_jit.py::test_name`, runs the tests themselves.
"""

import os
import subprocess
import sys

import pytest

EIGHT = {"FT_CPU_DEVICES": "8", "FT_PLATFORM": "cpu"}
HERE = all(os.environ.get(name) == value for name, value in EIGHT.items())


class InChild(pytest.Item):
    """All tests of a file, in a process with eight devices."""

    def runtest(self):
        command = [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            str(self.path),
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
        ]
        ran = subprocess.run(
            command, cwd=self.config.rootpath, env={**os.environ, **EIGHT}, capture_output=True, text=True, timeout=900
        )
        if ran.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
            pytest.skip(ran.stdout.strip().splitlines()[-1])  # the file skips itself
        if ran.returncode:
            raise Failed(ran.stdout + ran.stderr)

    def repr_failure(self, excinfo):
        return str(excinfo.value) if isinstance(excinfo.value, Failed) else super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, f"{self.path.name} on eight devices"


class Failed(Exception):
    """What the process wrote."""


class ChildFile(pytest.File):
    def collect(self):
        yield InChild.from_parent(self, name="on_eight_devices")


def pytest_pycollect_makemodule(module_path, parent):
    if not HERE and module_path.name.startswith("test_"):
        return ChildFile.from_parent(parent, path=module_path)
    return None
