"""Train states saved and restored by orbax, with a manager that keeps the latest."""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp


def main():
    state = {"params": {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3, jnp.bfloat16)}, "step": jnp.array(3)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve()
        checkpointer = ocp.StandardCheckpointer()
        checkpointer.save(path / "one", state)
        checkpointer.wait_until_finished()
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), state)
        restored = checkpointer.restore(path / "one", shapes)
        with ocp.CheckpointManager(path / "many", options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
            for step in range(4):
                manager.save(step, args=ocp.args.StandardSave(jax.tree.map(lambda x, k=step: x * k, state)))
            manager.wait_until_finished()
            steps = sorted(manager.all_steps())
            latest = manager.restore(steps[-1], args=ocp.args.StandardRestore(shapes))
    same = jax.tree.map(lambda a, b: bool(np.array_equal(a, b)), restored, state)
    return {"same": all(jax.tree.leaves(same)), "steps": steps, "w": latest["params"]["w"],
            "b": latest["params"]["b"].astype(jnp.float32), "step": latest["step"]}  # fmt: skip
