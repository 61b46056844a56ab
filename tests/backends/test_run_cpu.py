"""The launcher backends.xeon.run_cpu."""

import os
import subprocess
import sys

import pytest

from functorch_like.backends.xeon import run_cpu
from functorch_like.backends.xeon.run_cpu import Core


@pytest.fixture
def machine(tmp_path):
    """Two nodes of two cores with two threads each: 0-1 and 4-5 on node 0, 2-3 and 6-7 on node 1."""
    for node, cpus in ((0, "0-1,4-5"), (1, "2-3,6-7")):
        (tmp_path / "node" / f"node{node}").mkdir(parents=True)
        (tmp_path / "node" / f"node{node}" / "cpulist").write_text(cpus + "\n")
    for cpu in range(8):
        folder = tmp_path / "cpu" / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    return run_cpu.cores(range(8), tmp_path)


def numbers(shares):
    return [[core.number for core in share] for share in shares]


def test_cores_are_read_with_their_nodes(machine):
    assert [(core.number, core.node) for core in machine] == [
        (0, 0), (1, 0), (4, 0), (5, 0), (2, 1), (3, 1), (6, 1), (7, 1)
    ]  # fmt: skip


def test_how_cores_are_shared_out(machine):
    assert numbers(run_cpu.choose(machine)) == [[0, 1, 2, 3]]
    assert numbers(run_cpu.choose(machine, logical=True)) == [[0, 1, 4, 5, 2, 3, 6, 7]]
    assert numbers(run_cpu.choose(machine, instances=2)) == [[0, 1], [2, 3]]
    assert numbers(run_cpu.choose(machine, node=1)) == [[2, 3]]
    assert numbers(run_cpu.choose(machine, instances=2, each=1, node=0)) == [[0], [1]]


def test_too_many_are_refused(machine):
    with pytest.raises(ValueError, match="3 instances of 2 cores need more than the 4 cores"):
        run_cpu.choose(machine, instances=3, each=2)
    with pytest.raises(ValueError, match="5 instances of at least 1 cores"):
        run_cpu.choose(machine, instances=5)


def test_the_environment_of_an_instance():
    made = run_cpu.environment({"HOME": "/h", "LD_PRELOAD": "x.so"}, [Core(3, 0, "3"), Core(4, 0, "4")], 1, 2, "m.so")
    assert made["FT_CPU_THREADS"] == made["OMP_NUM_THREADS"] == "2" and made["HOME"] == "/h"
    assert made["LD_PRELOAD"] == "m.so:x.so" and (made["FT_INSTANCE"], made["FT_INSTANCES"]) == ("1", "2")


def test_allocators(monkeypatch, tmp_path):
    monkeypatch.setattr(run_cpu, "_FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert run_cpu.allocator("auto") is None
    with pytest.raises(ValueError, match="jemalloc is not installed"):
        run_cpu.allocator("jemalloc")
    (tmp_path / "libjemalloc.so.2").write_bytes(b"")
    assert run_cpu.allocator("auto") == str(tmp_path / "libjemalloc.so.2")
    assert run_cpu.allocator("default") is None


SCRIPT = """
import os, sys
print(sys.argv[1:], sorted(os.sched_getaffinity(0)), os.environ["FT_CPU_THREADS"])
sys.exit(3)
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux pins processes")
def test_a_script_runs_on_its_cores_and_its_status_is_reported(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    line = [sys.executable, "-m", "functorch_like.backends.xeon.run_cpu", "--ncores", "1", str(tmp_path / "script.py")]
    run = subprocess.run([*line, "--a", "b"], capture_output=True, text=True, check=False)
    first = run_cpu.choose(run_cpu.cores(sorted(os.sched_getaffinity(0))), each=1)[0][0].number
    assert run.returncode == 3 and run.stdout == f"['--a', 'b'] [{first}] 1\n", run.stderr
    assert f"instance 0: cores [{first}]" in run.stderr


def test_bad_arguments(capsys):
    with pytest.raises(SystemExit):
        run_cpu.main([])
    assert "name a script to run" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run_cpu.main(["--ncores", "100000", "x.py"])
    assert "need more than" in capsys.readouterr().err
