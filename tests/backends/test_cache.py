"""backends.cache: settings and statistics of the cache on disk. Its files are tested in tests/xla."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends


def program(number):
    """Compile a new function, call it, and check its result."""
    assert ft.jit(lambda x: fnp.cos(x) + number)(np.zeros(7, np.float32)).tolist() == [1 + number] * 7


def test_a_directory_of_ones_own(tmp_path):
    with backends.flags(cache_directory=tmp_path / "mine", cache_enabled=True):
        before = backends.cache.stats()
        assert before.directory == str(tmp_path / "mine") and before.programs == before.bytes == 0
        program(1.0)
        program(1.0)
        after = backends.cache.stats()
        assert after.programs == after.writes - before.writes > 0
        assert after.hits > before.hits and after.bytes > 1000
        told = backends.xla.about()["cache"]  # the report counts as `stats` does
        assert (told["programs"], told["bytes"]) == (after.programs, after.bytes)
        assert backends.cache.clear() == after.programs
        assert backends.cache.stats().programs == 0
        program(1.0)  # loaded programs stay usable, and removed ones are stored again
        assert backends.cache.stats().programs > 0
    assert backends.cache.stats().directory != str(tmp_path / "mine")


def test_turned_off_it_keeps_nothing(tmp_path):
    with backends.cache.flags(directory=str(tmp_path / "mine"), enabled=False):
        before = backends.cache.stats()
        program(2.0)
        after = backends.cache.stats()
        assert after.compiles > before.compiles and after.writes == before.writes and after.directory is None
        assert backends.cache.clear() == 0
    assert not (tmp_path / "mine").exists()


def test_a_block_belongs_to_its_thread(tmp_path):
    with backends.cache.flags(directory=tmp_path / "mine", enabled=True), ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(backends.cache.stats).result()
        assert theirs.directory != backends.cache.stats().directory == str(tmp_path / "mine")


def test_clearing_leaves_what_is_not_ours(tmp_path):
    with backends.cache.flags(directory=tmp_path / "mine", enabled=True):
        program(3.0)
        (tmp_path / "mine" / "notes.txt").write_text("mine")
        backends.cache.clear()
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_wrong_values_name_the_right_ones():
    with pytest.raises(ft.errors.ArgumentError, match="an int of at least 0"):
        backends.cache.max_bytes = -1
    with pytest.raises(ft.errors.ArgumentError, match="True or False"):
        backends.cache.enabled = "perhaps"


PROGRAM = """
import numpy as np
import functorch_like as ft, functorch_like.numpy as fnp
for k in range(8):
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_allclose(ft.jit(lambda x: fnp.sin(x) * k)(x), np.sin(x) * k, rtol=1e-6)
    if k % 3 == 0:
        ft.backends.cache.clear()
print("right", ft.backends.cache.stats().directory)
"""


def test_many_processes_share_a_directory_and_one_clears_it_meanwhile(tmp_path):
    env = {**os.environ, "FT_CACHE": "1", "FT_CACHE_DIR": str(tmp_path / "cache"), "FT_CACHE_MAX_BYTES": "40000"}
    run = lambda: subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    outputs = [process.communicate()[0] for process in [run() for _ in range(4)]]
    assert outputs == [f"right {tmp_path / 'cache'}\n"] * 4
