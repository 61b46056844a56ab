"""Tests on eight CPU devices: each file runs in its own process, which has eight devices.

The number of devices is fixed when a process starts. A process that already has eight runs the tests directly:
`FT_CPU_DEVICES=8 FT_PLATFORM=cpu pytest tests/sharding/test_jit.py::test_name`.
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
    """A failed run of a test file; the text is the output of its process."""


class ChildFile(pytest.File):
    def collect(self):
        yield InChild.from_parent(self, name="on_eight_devices")


def pytest_pycollect_makemodule(module_path, parent):
    if not HERE and module_path.name.startswith("test_"):
        return ChildFile.from_parent(parent, path=module_path)
    return None
