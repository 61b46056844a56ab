"""The launcher: `python -m functorch_like.distributed.run`."""

import os
import signal
import subprocess
import sys

import pytest
from support.processes import LIMIT, collect, environment, launch, wait_until

from functorch_like.distributed.child_processes import status_text
from functorch_like.distributed.coordinator import free_address
from functorch_like.distributed.launch import Launch
from functorch_like.distributed.run import parse

SHORT = ["--grace", "2"]


@pytest.fixture
def script(tmp_path):
    """Write a script; return its path."""

    def write(text):
        path = tmp_path / "script.py"
        path.write_text(text)
        return str(path)

    return write


def marked(text):
    return sorted(line for line in text.splitlines() if line.startswith("["))


def test_lines_are_marked(script):
    path = script(
        "import functorch_like as ft, sys\n"
        "ft.distributed.initialize()\n"
        "print('process', ft.process_index(), 'of', ft.process_count(), ft.local_device_count(), sys.argv[1:])\n"
        "print('error', file=sys.stderr, end='')\n"
    )
    ended = launch(["--nproc", "2", "--cpu-devices", "3", path, "--lr", "0.1"])
    assert ended.status == 0, ended
    assert marked(ended.output) == [f"[{r}] process {r} of 2 3 ['--lr', '0.1']" for r in range(2)]
    assert marked(ended.errors) == ["[0] error", "[1] error"]


def test_two_machines(script):
    path = script(
        "import functorch_like as ft\nft.distributed.initialize()\nprint(ft.process_index(), ft.process_count())\n"
    )
    address = free_address()
    command = [sys.executable, "-P", "-m", "functorch_like.distributed.run", "--nproc", "1", "--nnodes", "2"]
    started = [
        subprocess.Popen(
            [*command, "--coordinator", address, "--node-rank", str(node), path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        )
        for node in range(2)
    ]  # fmt: skip
    outputs = collect(started)
    assert [process.returncode for process in started] == [0, 0], outputs
    assert [output for output, _ in outputs] == ["[0] 0 2\n", "[1] 1 2\n"]


def test_a_failure_ends_the_others(script):
    path = script("import os, sys, time\nif os.environ['FT_PROCESS_ID'] == '1': sys.exit(3)\ntime.sleep(600)\n")
    ended = launch(["--nproc", "3", *SHORT, path])
    assert ended.status == 3
    assert "functorch_like: process 1 failed with status 3; the others are ended" in ended.errors


def test_one_that_does_not_end_is_killed(script):
    path = script(
        "import os, signal, sys, time\n"
        "if os.environ['FT_PROCESS_ID'] == '1': time.sleep(1); os.kill(os.getpid(), signal.SIGKILL)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n"
    )
    ended = launch(["--nproc", "2", "--grace", "0.5", path])
    assert ended.status == 128 + signal.SIGKILL
    assert "process 1 was ended by SIGKILL" in ended.errors


def start_and_wait(path, *arguments):
    """Start a launcher; return it with the ids of its two processes and their children, which each process prints."""
    command = [sys.executable, "-P", "-m", "functorch_like.distributed.run", "--nproc", "2", *arguments, path]
    launcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    pids = [int(pid) for _ in range(2) for pid in launcher.stdout.readline().split()[1:]]
    return launcher, pids


SLEEPER = (
    "import os, signal, subprocess, sys, time\n"
    "child = subprocess.Popen(['sleep', '600'])\n"
    # `print` could be interrupted by the signal, and must not be entered twice.
    "signal.signal(signal.SIGUSR1, lambda *a: (os.write(1, b'usr1\\n'), sys.exit(0)))\n"
    "print(os.getpid(), child.pid, flush=True)\n"
    "while True: time.sleep(0.05)\n"
)


def running(pid):
    """Return True if a process runs; a zombie does not count."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def all_ended(pids):
    return wait_until(lambda: not any(map(running, pids)), lambda: None)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_all(script, number):
    launcher, pids = start_and_wait(script(SLEEPER), *SHORT)
    launcher.send_signal(number)
    assert launcher.wait(LIMIT) != 0
    launcher.stdout.close()
    assert len(pids) == 4 and all_ended(pids)


def test_a_signal_before_the_first_process_is_a_failure():
    launch = Launch([sys.executable, "-c", "raise SystemExit(0)"], 2, 2, 0, {})
    launch.end_on(signal.SIGTERM)
    launch.start()
    assert launch.wait() == 128 + signal.SIGTERM


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_signals_are_passed_on_and_children_end(script):
    launcher, pids = start_and_wait(script(SLEEPER), *SHORT)
    launcher.send_signal(signal.SIGUSR1)
    output = launcher.stdout.read()
    assert launcher.wait(LIMIT) == 0
    launcher.stdout.close()
    assert sorted(output.split("\n")) == ["", "[0] usr1", "[1] usr1"]
    assert all_ended(pids)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends children")
def test_a_killed_launcher_leaves_no_process(script):
    launcher, pids = start_and_wait(script(SLEEPER))
    launcher.kill()
    launcher.wait(LIMIT)
    launcher.stdout.close()
    assert all_ended(pids[::2])
    for child in pids[1::2]:  # the launcher has no record of these
        os.kill(child, signal.SIGKILL)


def test_a_port_in_use(script):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = launch(["--coordinator", f"127.0.0.1:{taken.getsockname()[1]}", script("")])
    assert ended.status == 1 and "cannot listen" in ended.errors


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--nproc", "0", "s.py"], "at least 1"),
        (["--nnodes", "2", "s.py"], "need --coordinator"),
        (["--node-rank", "1", "s.py"], "not below --nnodes 1"),
        (["--coordinator", "here", "s.py"], "is not an address"),
        ([], "required: script"),
    ],
)
def test_wrong_arguments(capsys, arguments, text):
    with pytest.raises(SystemExit):
        parse(arguments)
    assert text in capsys.readouterr().err


def test_arguments_of_the_script_are_its_own():
    options = parse(["--nproc", "2", "-m", "package.module", "--nproc", "7", "-x"])
    assert (options.nproc, options.module, options.script, options.arguments) == (
        2, True, "package.module", ["--nproc", "7", "-x"],
    )  # fmt: skip


def test_statuses_as_text():
    assert status_text(3) == "failed with status 3" and status_text(-9) == "was ended by SIGKILL"
