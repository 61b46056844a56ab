"""The place of a process among others, read from the environment of a launcher or cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from functorch_like.errors import DistributedError, nearest


class Place(NamedTuple):
    """The place of a process; None for facts that the environment does not give.

    Attributes:
        coordinator_address: address of the coordinator, "host:port".
        num_processes: number of processes.
        process_id: the number of this one.
        local_process_id: its number among those of this machine.
        source: of these facts, for messages.
    """

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_process_id: int | None = None
    source: str = "the arguments"


Environment = Mapping[str, str]


def detect(method: str | None = None, env: Environment | None = None) -> Place:
    """Read the place of this process from the environment.

    Args:
        method: "plain", "slurm" or "openmpi"; the first that is present if None.
        env: variables; those of the process if None.

    Raises:
        DistributedError: for an unknown method, or variables that are not numbers.
    """
    env = os.environ if env is None else env
    if method is not None and method not in _READERS:
        raise DistributedError(
            f"cluster_detection_method={method!r} is unknown{nearest(method, _READERS)}",
            fix=f"use one of {', '.join(_READERS)}",
        )
    for name, read in _READERS.items():
        if method in (None, name):
            place = read(env)
            if place is not None:
                return place
    return Place()


def _plain(env: Environment) -> Place | None:
    """Return the place that `functorch_like.distributed.run` sets as `FT_...`, or PyTorch's launcher by its names."""
    if "FT_PROCESS_ID" in env or "FT_COORDINATOR_ADDRESS" in env:
        return Place(
            env.get("FT_COORDINATOR_ADDRESS"),
            _number(env, "FT_NUM_PROCESSES"),
            _number(env, "FT_PROCESS_ID"),
            _number(env, "FT_LOCAL_PROCESS_ID"),
            "FT_COORDINATOR_ADDRESS, FT_NUM_PROCESSES and FT_PROCESS_ID",
        )
    if {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"} <= env.keys():
        return Place(
            f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}",
            _number(env, "WORLD_SIZE"),
            _number(env, "RANK"),
            _number(env, "LOCAL_RANK"),
            "MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK",
        )
    return None


def _slurm(env: Environment) -> Place | None:
    """Return the place of a task of a SLURM step, `srun python script.py`; None without its variables.

    In a batch script, outside of a step, there are no tasks.
    """
    if "SLURM_JOB_ID" not in env or "SLURM_PROCID" not in env:
        return None
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST") or env.get("SLURM_NODELIST")
    job = _number(env, "SLURM_JOB_ID") or 0
    address = f"{first_node(nodes)}:{_port(job)}" if nodes else None
    tasks = _number(env, "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in env else "SLURM_NTASKS")
    return Place(address, tasks, _number(env, "SLURM_PROCID"), _number(env, "SLURM_LOCALID"), "SLURM's variables")


def _openmpi(env: Environment) -> Place | None:
    """Return the place of a process of `mpirun`; None for other processes.

    The coordinator is on the machine that mpirun's own address names (Open MPI 4).
    """
    if "OMPI_COMM_WORLD_RANK" not in env:
        return None
    uri = env.get("OMPI_MCA_orte_hnp_uri", "")
    host = re.search(r"tcp://\[?([0-9a-fA-F.:]+?)[\],:]", uri + ",")
    job = int((re.match(r"\d+", uri) or ["0"])[0])
    address = f"{host[1]}:{_port(job)}" if host else None
    if address is None and env.get("OMPI_COMM_WORLD_SIZE") == env.get("OMPI_COMM_WORLD_LOCAL_SIZE"):
        # all processes on this machine are children of mpirun's process, so they share its number
        address = f"127.0.0.1:{_port(os.getppid())}"
    return Place(
        address,
        _number(env, "OMPI_COMM_WORLD_SIZE"),
        _number(env, "OMPI_COMM_WORLD_RANK"),
        _number(env, "OMPI_COMM_WORLD_LOCAL_RANK"),
        "Open MPI's variables",
    )


_READERS: dict[str, Callable[[Environment], Place | None]] = {
    "plain": _plain,
    "slurm": _slurm,
    "openmpi": _openmpi,
}


def _number(env: Environment, name: str) -> int | None:
    text = env.get(name)
    if not text:
        return None
    if not text.strip().isdecimal():
        raise DistributedError(f"the environment variable {name}={text!r} is not a number", fix="correct or unset it")
    return int(text)


def _port(job: int) -> int:
    """Return a port that differs between jobs, of the range that is free for any use."""
    return 49152 + job % 16384


def first_node(nodes: str) -> str:
    """Return the first host of a node list as SLURM writes it.

    >>> first_node("gpu[003-007,012],login1")
    'gpu003'
    """
    first = re.match(r"([^,\[]*)(?:\[([^\],-]+)[^\]]*\]([^,\[]*))?", nodes)
    assert first is not None  # every part may be empty
    return "".join(part or "" for part in first.groups())
