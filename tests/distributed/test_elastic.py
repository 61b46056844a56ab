"""Elastic training: workers are killed with SIGKILL, freeze, and join, and the result is that of an undisturbed run.

`FT_TEST_KILLS` is the number of kills at random moments: 5 by default, 50 in nightly runs.
"""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from support.processes import LIMIT, abort, collect, descendants, environment, launch, wait_until

import functorch_like as ft
from functorch_like.distributed.coordinator import free_address
from functorch_like.distributed.elastic.checkpoints import Checkpoints
from functorch_like.distributed.elastic.host_state import HostState

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked, and waited for with pidfd")
KILLS = int(os.environ.get("FT_TEST_KILLS", "5"))
COMMAND = [sys.executable, "-P", "-m", "functorch_like.distributed.run", "--elastic"]

TRAIN = """
import os, sys, time
import numpy as np
import functorch_like as ft, functorch_like.numpy as fnp

STEPS, LOG, PAUSE = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((1000, 12, 12)), rng.standard_normal((1000, 12))

def step(state, batch):
    loss, gradient = ft.value_and_grad(lambda w: fnp.mean((batch["x"] @ w - batch["y"]) ** 2))(state["w"])
    return {"w": state["w"] - 0.05 * gradient, "steps": state["steps"] + 1}, loss

HOLDS = [int(k) for k in os.environ.get("HOLDS", "").split()]

def batches(k, rank, count):
    while any(k >= at and not os.path.exists(f"{LOG}.{at}") for at in HOLDS):
        time.sleep(0.01)
    time.sleep(PAUSE if count >= int(os.environ.get("SLOW_BELOW", "0")) else 0.2)
    part = slice(rank * (12 // count), (rank + 1) * (12 // count))
    return {"x": X[k, part], "y": Y[k, part]}

def report(k, loss):
    with open(LOG, "a") as file:
        file.write(f"{os.getpid()} {os.getppid()} {ft.process_index()} {ft.process_count()} {k}\\n")

options = {} if len(sys.argv) < 5 else {"checkpoints": sys.argv[4], "checkpoint_every": 5}
if "SAVE_EVERY" in os.environ:
    options["save_every"] = int(os.environ["SAVE_EVERY"])
if "SHARDED" in os.environ:
    options["shardings"] = lambda state, mesh: ft.parallel.fsdp_shardings(state, mesh, smallest=1)
start = {"w": np.zeros(12), "steps": 0}
state = ft.distributed.elastic_loop(step, start, batches, steps=STEPS, report=report, **options)
print("state", state["steps"], state["w"].tobytes().hex(), flush=True)
"""


def expected(steps):
    """Return the weights after `steps` steps of gradient descent in NumPy."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((1000, 12, 12)), rng.standard_normal((1000, 12))
    w = np.zeros(12)
    for k in range(steps):
        w -= 0.05 * 2 / 12 * x[k].T @ (x[k] @ w - y[k])
    return w


class Report(NamedTuple):
    """A line of the log: process, its keeper, rank, number of processes, and steps taken."""

    child: int
    keeper: int
    rank: int
    count: int
    step: int


class Job:
    """A run of the training script under the launcher."""

    def __init__(self, tmp_path, steps, nproc=3, *, launcher=(), arguments=(), pause=0.02, **more):
        self.steps, self._log = steps, tmp_path / "log"
        self._log.write_text("")
        script = tmp_path / "train.py"
        script.write_text(TRAIN)
        self.script = [str(script), str(steps), str(self._log), str(pause), *arguments]
        self.environment = environment(FT_CACHE="1", FT_CACHE_DIR=str(tmp_path / "cache"), **more)
        limits = ["--heartbeat-timeout", "4", "--max-restarts", "30", "--grace", "2"]
        self._output, self._errors = tmp_path / "output", tmp_path / "errors"
        with self._output.open("w") as output, self._errors.open("w") as errors:  # an unread pipe would fill up
            self.process = subprocess.Popen(
                [*COMMAND, "--nproc", str(nproc), *limits, *launcher, *self.script],
                stdout=output, stderr=errors, env=self.environment, start_new_session=True,
            )  # fmt: skip

    def printed(self):
        return self._output.read_text(), self._errors.read_text()

    def reports(self):
        lines = self._log.read_text().splitlines(keepends=True)
        return [Report(*map(int, line.split())) for line in lines if line.endswith("\n")]

    def _progress(self):
        return [path.stat().st_size for path in (self._log, self._output, self._errors)]

    def fail(self, reason):
        """Fail with the last reports, the states and stacks of the processes, and their output."""
        states = abort(self.process) if self.process.poll() is None else f"exit status {self.process.returncode}"
        output, errors = self.printed()
        pytest.fail(f"{reason}; {states}\n{self.reports()[-5:]}\n{output}\n{errors}")

    def go_on(self, hold):
        """Release the processes that wait at step `hold`, one of the numbers in HOLDS."""
        self._log.with_name(f"{self._log.name}.{hold}").touch()

    def wait_for(self, condition):
        """Wait until a condition of the reports holds, as long as there is progress; return the reports."""
        if not wait_until(lambda: self.process.poll() is not None or condition(self.reports()), self._progress):
            self.fail("there is no progress")
        found = self.reports()
        if not condition(found):
            self.fail("the run has ended")
        return found

    def finish(self, workers):
        """Wait for the end, and check the states of the workers; return what the launcher printed to stderr."""
        if not wait_until(lambda: self.process.poll() is not None, self._progress):
            self.fail("the run does not end")
        output, errors = self.printed()
        assert self.process.returncode == 0, output + errors
        states = [line.split(" ", 1)[1].split() for line in output.splitlines() if "state" in line]
        assert len(states) == workers and len({state[-1] for state in states}) == 1, output + errors
        assert {int(state[-2]) for state in states} == {self.steps}
        w = np.frombuffer(bytes.fromhex(states[0][-1]))
        np.testing.assert_allclose(w, expected(self.steps), rtol=1e-9, atol=1e-12)
        check_losses(self.reports(), int(self.environment.get("SAVE_EVERY", "1")))
        return errors


def check_losses(reports, save_every):
    """Check that each process started at most `save_every` steps behind the furthest step so far."""
    furthest, started = 0, set()
    for report in reports:
        if report.child not in started:
            started.add(report.child)
            assert report.step >= furthest - save_every, (report, furthest)
        furthest = max(furthest, report.step)


def kill_one(rng, reports):
    """Kill a random child or whole worker among those that reported last."""
    victims = [pid for report in reports for pid in (report.child, report.keeper)]
    rng.shuffle(victims)
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
            return
        except ProcessLookupError:
            continue


@contextmanager
def job(*args, **kwargs):
    made = Job(*args, **kwargs)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.terminate()
            try:
                made.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(made.process.pid, signal.SIGKILL)
                made.process.wait()


def test_kills_at_random_moments(tmp_path):
    """Children and whole workers are killed, in steps and while the others gather."""
    rng = random.Random(7)
    with job(tmp_path, steps=40 + 12 * KILLS) as training:
        for kill in range(KILLS):
            reports = training.wait_for(lambda found, due=10 * kill + 5: found and found[-1].step >= due)
            time.sleep(rng.random() * rng.choice([0.05, 0.5]))
            kill_one(rng, [r for r in reports if r.step >= reports[-1].step - 1])
        errors = training.finish(workers=3)
    assert errors.count(" ends: ") >= 1
    assert f"after step {training.steps}" in errors


def test_states_that_are_saved_seldom(tmp_path):
    """A loss costs the steps since the last save."""
    with job(tmp_path, 62, 2, SAVE_EVERY="4") as training:
        found = training.wait_for(lambda found: found and found[-1].step >= 18)
        os.kill(found[-1].child, signal.SIGKILL)
        found = training.wait_for(lambda now: now[-1].step >= 30 and now[-1].child not in {r.child for r in found})
        os.kill(found[-1].keeper, signal.SIGKILL)
        training.finish(workers=2)
    steps = [report.step for report in training.reports()]
    assert set(steps) == set(range(1, 63))


def test_a_worker_that_comes_again_when_all_steps_have_been_taken(tmp_path):
    """It gets the final state, so even a worker on a slow machine returns from the loop."""
    status, output, errors = run_script(
        tmp_path,
        """
        os.chdir(os.path.dirname(__file__))
        def batches(k, rank, count):
            if k == 3 and rank == 1 and not os.path.exists("killed"):
                open("killed", "w").close()
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(1000)
            return np.ones(2 * (2 // count), np.float32)
        def report(k, loss):
            if k == 6:
                open("over", "w").close()
        while os.path.exists("killed") and not os.path.exists("over"):
            time.sleep(0.01)
        state = ft.distributed.elastic_loop(lambda s, b: (s + b.sum(), 0), 0.0, batches, steps=6, report=report)
        print("state", state)
        """,
        *("--nproc", "2"),
    )
    assert status == 0 and output.count("state 24.0") == 2, output + errors
    assert "all steps have been taken; waits for workers that get the state: " in errors
    assert "begins at step 6 with 2 workers" in errors and "all 2 workers have the same state after step 6" in errors


def test_a_frozen_child_and_a_frozen_worker(tmp_path):
    """The steps wait for each freeze; the run would wait for ever for a worker that freezes after the last step."""
    with job(tmp_path, steps=80, HOLDS="20 60") as training:
        first = training.wait_for(lambda found: found and found[-1].step >= 10)
        os.kill(first[-1].child, signal.SIGSTOP)
        training.go_on(20)
        children = {report.child for report in training.reports()}
        found = training.wait_for(lambda found: found[-1].step >= 30 and found[-1].child not in children)
        os.kill(found[-1].keeper, signal.SIGSTOP)
        os.kill(found[-1].child, signal.SIGSTOP)
        training.go_on(60)
        errors = training.finish(workers=3)
    assert errors.count("it was silent for 4 s: frozen") >= 2, errors


def test_a_machine_that_stands_still(tmp_path):
    """If all processes stop for longer than the limit of silence, none of them counts as frozen."""
    with job(tmp_path, 60, 2) as training:
        training.wait_for(lambda found: found and found[-1].step >= 10)
        pids = [*descendants(training.process.pid), training.process.pid]
        for number, pause in ((signal.SIGSTOP, 6.0), (signal.SIGCONT, 0.0)):
            for pid in pids:
                with suppress(ProcessLookupError):  # on a loaded machine the run may be over before it stands still
                    os.kill(pid, number)
            time.sleep(pause)
        errors = training.finish(workers=2)
    assert " ends: " not in errors and "silent" not in errors, errors
    assert {report.step for report in training.reports()} == set(range(1, 61))


def test_a_last_report_that_takes_long(tmp_path):
    """The others wait for it, though it takes longer than the limit of silence."""
    status, output, errors = run_script(
        tmp_path,
        """
        def report(k, loss):
            if k == 4 and ft.process_index() == 1:
                time.sleep(5)
        batches = lambda k, rank, count: np.ones(2 * (2 // count), np.float32)
        state = ft.distributed.elastic_loop(lambda s, b: (s + b.sum(), 0), 0.0, batches, steps=4, report=report)
        print("state", state)
        """,
        *("--nproc", "2", "--heartbeat-timeout", "4"),
    )
    assert status == 0 and output.count("state 16.0") == 2, output + errors
    assert errors.count(" begins") == 1, errors


def test_a_newcomer(tmp_path):
    """The workers leave a generation together, outside collectives, and the newcomer joins the next one."""
    address = free_address()
    with job(tmp_path, 80, 2, launcher=["--coordinator", address], SLOW_BELOW="3") as training:
        training.wait_for(lambda found: found and found[-1].step >= 3)
        other = subprocess.Popen(
            [*COMMAND, "--node-rank", "2", "--coordinator", address, *training.script],
            env=training.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        errors = training.finish(workers=2)
        ((output, _),) = collect([other])
    assert other.returncode == 0 and "state 80" in output
    assert (
        "worker 2 joins with the next generation" in errors and "with 3 workers" in errors and " ends: " not in errors
    )
    steps = [report.step for report in training.reports() if report.rank == 0]
    assert steps == list(range(1, 81)), "no step was taken twice"


def test_checkpoints_of_a_split_state(tmp_path):
    """All workers and the launcher are killed; the next run continues from a file."""
    folder = str(tmp_path / "checkpoints")
    options = {"arguments": [folder], "SHARDED": "1", "FT_CPU_DEVICES": "1"}
    with job(tmp_path, 200, 1, **options) as training:
        found = training.wait_for(lambda found: found and found[-1].step >= 17)
        os.killpg(training.process.pid, signal.SIGKILL)
        training.process.wait(LIMIT)
        pids = {found[-1].child, found[-1].keeper}
        assert wait_until(lambda: not any(map(is_alive, pids)), lambda: None), "processes outlive their launcher"
    last = training.reports()[-1].step
    with job(tmp_path, 60, 2, **options) as training:
        errors = training.finish(workers=2)
    assert f"begins at step {last - last % 5} with 2 workers" in errors


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def run_script(tmp_path, text, *arguments, **more):
    """Run a script under the launcher; return its status, output and errors."""
    path = tmp_path / "script.py"
    path.write_text("import functorch_like as ft, numpy as np, os, signal, sys, time\n" + textwrap.dedent(text))
    return launch(["--elastic", *arguments, str(path)], **more)


def test_a_child_that_hangs_in_the_users_code(tmp_path):
    status, output, errors = run_script(
        tmp_path,
        """
        def batches(k, rank, count):
            if k == 3 and rank == 1 and not os.path.exists("hung"):
                open("hung", "w").close()
                time.sleep(1000)
            return np.ones(2 * (2 // count), np.float32)
        os.chdir(os.path.dirname(__file__))
        state = ft.distributed.elastic_loop(lambda s, b: (s + b.sum(), 0), 0.0, batches, steps=6, step_timeout=2)
        print("state", state)
        """,
        *("--nproc", "2"),
    )
    assert status == 0 and output.count("state 24.0") == 2, output + errors
    assert "it was in batches (step 3) for 2 s" in errors


def test_an_error_of_the_users_code_ends_the_run(tmp_path):
    status, _, errors = run_script(
        tmp_path,
        """
        def batches(k, rank, count):
            if k == 2 and rank == 1:
                raise KeyError("no such sample")
            return np.ones(2, np.float32)
        ft.distributed.elastic_loop(lambda s, b: (s + b.sum(), 0), 0.0, batches, steps=6)
        """,
        *("--nproc", "2", "--grace", "1"),
    )
    assert status == 1 and "KeyError: 'no such sample'" in errors
    assert errors.count(" failed") == 1 and "begins" in errors and "generation 2" not in errors


def test_a_second_loop_is_refused(tmp_path):
    status, output, errors = run_script(
        tmp_path,
        """
        loop = lambda state: ft.distributed.elastic_loop(lambda s, b: (s + b.sum(), 0), state, batches, steps=2)
        batches = lambda k, rank, count: np.ones(2, np.float32)
        print("first", loop(0.0), flush=True)
        print("second", loop(1.0))
        """,
        *("--nproc", "1", "--grace", "1"),
    )
    assert status == 1 and "first 4.0" in output and "second" not in output, output + errors
    assert "elastic_loop is called again, and the launcher's run ended with the first loop" in errors


def test_a_run_that_a_signal_ends_has_failed(tmp_path):
    with job(tmp_path, 1000, 2) as training:
        training.wait_for(lambda reports: len(reports) > 4)
        training.process.terminate()
        assert training.process.wait(LIMIT) == 128 + signal.SIGTERM


def test_workers_that_die_again_and_again(tmp_path):
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    status, _, errors = run_script(tmp_path, kill, "--nproc", "1", "--max-restarts", "2")
    assert status == 128 + 9 and "worker 0 was ended by SIGKILL" in errors
    step = f"ft.distributed.elastic_loop(lambda s, b: (s, 0), 0.0, lambda *a: {kill}, steps=6)"
    status, _, errors = run_script(tmp_path, step, "--nproc", "1", "--max-restarts", "2")
    assert status == 1 and errors.count(" begins") == 3, errors
    assert "3 generations ended without a step; the last one: worker 0: its process was ended by SIGKILL" in errors


def test_states_that_cannot_be():
    loop = partial(ft.distributed.elastic_loop, lambda s, b: (s, 0), batches=lambda *a: np.ones(1), steps=1)
    with pytest.raises(ft.errors.ArgumentError, match=r"the state\['a'\] is <object"):
        loop({"a": object()})
    with pytest.raises(ft.errors.ArgumentError, match="checkpoint_every=10 is not a multiple of save_every=3"):
        loop(0.0, save_every=3, checkpoint_every=10)
    changes = partial(
        ft.distributed.elastic_loop, lambda s, b: ({"w": s["w"] + 1j}, 0), batches=loop.keywords["batches"]
    )
    other = pytest.raises(ft.errors.ArgumentError, match=r"(?s)step 1 returns a state of other .* at \['w'\]")
    with pytest.warns(UserWarning, match=r"donated buffers were not usable: f64\[2\]"), other:
        changes({"w": np.ones(2)}, steps=1)


def test_devices_that_were_used_before_the_loop(monkeypatch):
    monkeypatch.setenv("FT_ELASTIC_ADDRESS", "127.0.0.1:1")
    ft.devices()
    with pytest.raises(ft.errors.DistributedError, match="this process has used its devices"):
        ft.distributed.elastic_loop(lambda s, b: (s, 0), 0.0, lambda *a: np.ones(1), steps=1)


def test_a_state_in_memory_is_whole_at_any_moment():
    state = HostState({"a": np.arange(3.0), "b": (np.ones((2, 2), "float16"), 7, True)}, step=4)
    assert state.step == 4 and state.treedef == ft.tree.structure(state.read())
    views = state.views()
    state.write(5, [np.arange(3.0) + 1, np.zeros((2, 2), "float16"), np.asarray(8, "int32"), np.asarray(False)])
    assert views[0].tolist() == [0, 1, 2], "the state before is still there"
    assert state.step == 5 and state.read()["a"].tolist() == [1, 2, 3] and int(state.read()["b"][1]) == 8
    other = HostState(state.read())
    other.write_payload(5, state.payload())
    assert other.digest() == state.digest() and other.description() == state.description()


def test_checkpoints_that_are_damaged(tmp_path):
    files, state = Checkpoints(tmp_path, keep=2), HostState(np.zeros(100), 0)
    for step in (10, 20, 30):
        state.write(step, [np.full(100, float(step))])
        files.save(state)
    first, second = files.files()
    assert (first.name, second.name) == ("step_000000000020.ftstate", "step_000000000030.ftstate")
    second.write_bytes(second.read_bytes()[:-1])
    fresh = HostState(np.zeros(100))
    with pytest.warns(UserWarning, match="step_000000000030.ftstate is damaged; an older one is taken"):
        assert files.load(fresh)
    assert fresh.step == 20 and fresh.read()[0] == 20
    with pytest.raises(ft.errors.ArgumentError, match=r"is of another state: .*100.*; this one is .*99"):
        files.load(HostState(np.zeros(99)))
