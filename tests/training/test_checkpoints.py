"""CheckpointManager: the checkpoints that it keeps, and a training loop that resumes unchanged after random kills.

`FT_KILLS=50 pytest tests/training/test_checkpoints.py -k killed` kills it more often than a build does.
"""

import os
import random
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, CheckpointError

pytest.importorskip("safetensors", reason="the io extra is not installed")
TREE = {"w": fnp.ones(3)}


def filled(folder, steps=range(6), losses=None, **options):
    with ft.io.CheckpointManager(folder, **options) as manager:
        for k in steps:
            metrics = None if losses is None else {"loss": losses[k]}
            manager.save(k, {"w": fnp.full(3, float(k))}, metrics=metrics)
    return manager


@pytest.mark.parametrize("asynchronous", [True, False])
def test_the_last_are_kept(tmp_path, asynchronous):
    manager = filled(tmp_path / "run", asynchronous=asynchronous)
    assert manager.steps() == [3, 4, 5]
    assert manager.latest_step() == 5
    assert manager.restore(like=TREE)["w"].tolist() == [5, 5, 5]
    assert manager.restore(3)["w"].tolist() == [3, 3, 3]
    assert len(list((tmp_path / "run").iterdir())) == 3
    assert filled(tmp_path / "all", keep_last=None).steps() == list(range(6))


def test_the_best_are_kept(tmp_path):
    losses = [3.0, 1.0, float("nan"), 1.0, 5.0, 4.0, float("inf")]
    manager = filled(tmp_path / "a", range(7), losses, keep_last=1, best_metric="loss", keep_best=2)
    assert manager.steps() == [1, 3, 6]
    assert manager.best_step() == 3
    assert manager.metrics(1) == {"loss": 1.0}
    assert filled(tmp_path / "b", range(7), losses, keep_last=1, best_metric="loss", best_is="max").best_step() == 6
    again = ft.io.CheckpointManager(tmp_path / "a", best_metric="loss")  # as in another process
    assert again.best_step() == 3


def test_what_a_killed_process_left_is_removed(tmp_path):
    filled(tmp_path, range(2))
    (tmp_path / "step-000000000009").mkdir()
    (tmp_path / "step-000000000009" / "part-x.safetensors").write_bytes(b"half")
    (tmp_path / "step-000000000001" / ".index.json.1-ab.tmp").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    manager = ft.io.CheckpointManager(tmp_path)
    assert manager.steps() == [0, 1] and manager.latest_step() == 1
    manager.save(2, TREE)
    manager.wait()
    assert manager.steps() == [0, 1, 2]
    # A shorter name could be part of a number of a process.
    left = [p.name for p in tmp_path.rglob("*") if "step-000000000009" in p.name or p.name.endswith("tmp")]
    assert sorted(left) == []
    assert (tmp_path / "notes.txt").exists()


def test_a_step_can_be_saved_again(tmp_path):
    manager = filled(tmp_path, range(3))
    manager.save(1, {"w": fnp.zeros(1)})
    assert manager.restore(1)["w"].tolist() == [0]
    assert manager.steps() == [0, 1, 2]


def test_shapes_that_changed_name_the_leaf(tmp_path):
    with pytest.raises(CheckpointError, match=r"w +f32\[3\] +f32\[4\]"):
        filled(tmp_path).restore(like={"w": fnp.zeros(4)})


def test_a_damaged_checkpoint_names_the_others(tmp_path):
    manager = filled(tmp_path)
    part = next((tmp_path / "step-000000000005").glob("part*"))
    part.write_bytes(part.read_bytes()[:-5])
    with pytest.raises(CheckpointError, match=r"steps \[3, 4\] are there as well: restore\(4\)"):
        manager.restore()
    assert manager.restore(4)["w"].tolist() == [4, 4, 4]


def test_a_write_that_failed_is_reported_at_the_next_call(tmp_path, monkeypatch):
    manager = filled(tmp_path, range(2))
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", lambda *args: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        manager.save(2, TREE)
        with pytest.raises(CheckpointError, match="No space left"):
            manager.wait()
    manager.save(3, TREE)
    manager.wait()
    assert manager.steps() == [0, 1, 3]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m: m.save(-1, TREE), ArgumentError, "step=-1"),
        (lambda m: m.save(fnp.asarray(1), TREE), ArgumentError, "step="),
        (lambda m: m.save(1, TREE, metrics={"accuracy": 1}), ArgumentError, "lacks 'loss'"),
        (lambda m: m.save(1, {"f": print}, metrics={"loss": 1}), CheckpointError, "f: a builtin"),
        (lambda m: m.restore(), CheckpointError, "no complete checkpoint"),
        (lambda m: m.metrics(3), CheckpointError, "no file|not a safetensors"),
        (lambda m: ft.io.CheckpointManager("x", keep_last=0), ArgumentError, "keeps no checkpoint"),
        (lambda m: ft.io.CheckpointManager("x", best_is="least"), ArgumentError, "best_is"),
        (lambda m: ft.io.CheckpointManager("x").best_step(), ArgumentError, "compares no metric"),
    ],
)  # fmt: skip
def test_errors(tmp_path, call, error, text):
    with pytest.raises(error, match=text):
        call(ft.io.CheckpointManager(tmp_path, best_metric="loss"))


def test_a_missing_step(tmp_path):
    with pytest.raises(CheckpointError, match=r"no checkpoint of step 0.*\n(.*\n)*.*\[3, 4, 5\]"):
        filled(tmp_path).restore(0)


# ------------------------------------------------------------------------------------------------------------- kill -9
KILLS = int(os.environ.get("FT_KILLS", "3"))
STEPS = 12 + 6 * KILLS
TRAINING = textwrap.dedent("""
    import sys, time
    import numpy as np
    import functorch_like as ft, functorch_like.numpy as fnp
    from functorch_like import random

    folder, asynchronous = sys.argv[1], sys.argv[2] == "asynchronous"

    @ft.jit
    def step(state):
        key, drawn = random.split(state["key"])
        x = random.normal(drawn, (16, 4))
        def loss(w):
            return fnp.mean((fnp.tanh(x @ w["a"]) @ w["b"] - x[:, :1]) ** 2)
        value, grads = ft.value_and_grad(loss)(state["w"])
        momentum = ft.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], grads)
        w = ft.tree.map(lambda p, m: p - 0.05 * m, state["w"], momentum)
        losses = state["losses"].at[state["step"]].set(value)
        return {"w": w, "momentum": momentum, "key": key, "step": state["step"] + 1, "losses": losses}

    w = {"a": fnp.full((4, 3), 0.3), "b": fnp.full((3, 1), -0.2)}
    state = {"w": w, "momentum": ft.tree.map(fnp.zeros_like, w), "key": random.key(0),
             "step": fnp.zeros((), "int32"), "losses": fnp.zeros(STEPS)}
    with ft.io.CheckpointManager(folder, keep_last=2, asynchronous=asynchronous) as manager:
        if manager.latest_step() is not None:
            state = manager.restore(like=state)
        print("begins at", int(state["step"]), flush=True)
        while int(state["step"]) < STEPS:
            state = step(state)
            manager.save(int(state["step"]), state)
    print("end", flush=True)
""").replace("STEPS", str(STEPS))


def run(folder, how):
    command = [sys.executable, "-P", "-c", TRAINING, str(folder), how]
    # The last digits of a loss may differ between tiers, and a kill moves the step at which the tier changes.
    variables = {**os.environ, "FT_DETERMINISTIC_ALGORITHMS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=variables)


def losses_in(folder):
    manager = ft.io.CheckpointManager(folder)
    return manager.latest_step(), np.asarray(manager.restore()["losses"])


def test_a_loop_that_is_killed_has_the_losses_of_one_that_is_not(tmp_path):
    draw = random.Random(int(os.environ.get("FT_KILLS_SEED", "0")))
    whole = run(tmp_path / "whole", "synchronous")
    assert whole.communicate(timeout=120)[0].endswith("end\n")
    folder, begins = tmp_path / "killed", []
    for k in range(KILLS):
        process = run(folder, ("asynchronous", "synchronous")[k % 2])
        if draw.random() < 0.9:  # otherwise kill it before or during its start
            begins.append(process.stdout.readline())
        time.sleep(draw.uniform(0, 0.4))
        process.kill()
        process.communicate()
        assert ft.io.CheckpointManager(folder).latest_step() is None or losses_in(folder)[1].shape == (STEPS,)
    last = run(folder, "asynchronous")
    output = last.communicate(timeout=120)[0]
    assert last.returncode == 0 and output.endswith("end\n")
    assert len({*begins, output.splitlines()[0]}) > 1, begins  # some run made progress before its kill
    for found in (losses_in(folder), losses_in(tmp_path / "whole")):
        assert found[0] == STEPS
    np.testing.assert_array_equal(losses_in(folder)[1], losses_in(tmp_path / "whole")[1])
    assert len(list(folder.iterdir())) == 2
