"""Workers in processes of their own, one for each side."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def add_sides(parser: argparse.ArgumentParser) -> None:
    """Add the options of the interpreters of both sides, of the number of processes, and of a file for the figures."""
    for side in ("ours", "jax"):
        default = os.environ.get(f"FT_BENCH_{side.upper()}", sys.executable)
        parser.add_argument(f"--{side}", default=default, help="the interpreter of this side")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side (default 3)")
    parser.add_argument("--json", help="write every figure, with date and versions, to this file")


def result_of(python: str, worker: Path, side: str, **environment: str) -> Any:
    """Return the JSON that a worker prints last, run in a new process with these variables of its environment."""
    command = [python, str(worker), side]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])
