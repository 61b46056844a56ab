"""Launcher: run a script on chosen cores, with one thread for each, the memory of their node and a fast allocator.

    python -m functorch_like.backends.xeon.run_cpu --ncores 8 train.py --epochs 3
    python -m functorch_like.backends.xeon.run_cpu --ninstances 4 serve.py     # each on a quarter of the cores
    python -m functorch_like.backends.xeon.run_cpu --node 1 -m package.module

Each instance finds its number, counted from 0, in FT_INSTANCE, and the number of instances in FT_INSTANCES.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_ALLOCATORS = {"tcmalloc": "libtcmalloc*.so*", "jemalloc": "libjemalloc.so*"}
_FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")


class Core(NamedTuple):
    """One logical processor: its number, its node of memory, and the physical core that it is a thread of."""

    number: int
    node: int
    physical: str


def cores(usable: Sequence[int], root: Path = Path("/sys/devices/system")) -> list[Core]:
    """The logical processors of a machine that this process may use, by node and number."""
    nodes = {
        number: int(folder.name.removeprefix("node"))
        for folder in (root / "node").glob("node[0-9]*")
        for number in _listed(folder / "cpulist")
    }
    rows = []
    for number in usable:
        siblings = root / "cpu" / f"cpu{number}" / "topology" / "thread_siblings_list"
        rows.append(Core(number, nodes.get(number, 0), _text(siblings) or str(number)))
    return sorted(rows, key=lambda core: (core.node, core.number))


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _listed(path: Path) -> list[int]:
    """The numbers of text such as "0-3,8"."""
    numbers: list[int] = []
    for part in filter(None, _text(path).split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def choose(
    all_cores: Sequence[Core],
    instances: int = 1,
    each: int | None = None,
    node: int | None = None,
    logical: bool = False,
) -> list[list[Core]]:
    """Choose the cores of each instance; no two share one.

    Args:
        all_cores: to choose from.
        instances: number of instances.
        each: cores for each; an equal share of all by default.
        node: take those of this node of memory alone.
        logical: count hyper-threads as cores, instead of leaving the second thread of a core idle.

    Raises:
        ValueError: where there are not so many.
    """
    own = [core for core in all_cores if node is None or core.node == node]
    if not logical:
        first: dict[str, Core] = {}
        for core in own:
            first.setdefault(core.physical, core)
        own = list(first.values())
    share = each if each is not None else len(own) // instances
    if share < 1 or share * instances > len(own):
        kind = "threads" if logical else "cores"
        raise ValueError(
            f"{instances} instances of {share or 'at least 1'} {kind} need more than the {len(own)} {kind} there are"
        )
    return [own[i * share : (i + 1) * share] for i in range(instances)]


def allocator(choice: str) -> str | None:
    """The library of an allocator to preload; None for the system's own.

    Args:
        choice: "tcmalloc", "jemalloc", "default", or "auto": the first of these that is there.

    Raises:
        ValueError: where it is not installed.
    """
    names = {"auto": list(_ALLOCATORS), "default": []}.get(choice, [choice])
    for name in names:
        for folder in (*_FOLDERS, str(Path(sys.prefix) / "lib")):
            paths = sorted(Path(folder).glob(_ALLOCATORS[name])) if Path(folder).is_dir() else []
            if paths:
                return str(paths[0])
    if choice in _ALLOCATORS:
        raise ValueError(f"{choice} is not installed in any of {', '.join(_FOLDERS)}")
    return None


def environment(
    base: Mapping[str, str], chosen: Sequence[Core], number: int, instances: int, library: str | None
) -> dict[str, str]:
    """The environment of one instance."""
    made = {
        **base,
        "FT_CPU_THREADS": str(len(chosen)),
        "OMP_NUM_THREADS": str(len(chosen)),  # SciPy's BLAS
        "OPENBLAS_NUM_THREADS": str(len(chosen)),
        "FT_INSTANCE": str(number),
        "FT_INSTANCES": str(instances),
    }
    if library is not None:
        made["LD_PRELOAD"] = ":".join(filter(None, [library, base.get("LD_PRELOAD", "")]))
    return made


def command(arguments: argparse.Namespace, chosen: Sequence[Core]) -> list[str]:
    """Return the command of one instance: the script, after numactl if it is installed and there are several nodes."""
    script = [sys.executable, *(["-m"] if arguments.module else []), *arguments.script]
    nodes = sorted({core.node for core in chosen})
    if shutil.which("numactl") and Path("/sys/devices/system/node/node1").exists():
        return ["numactl", f"--membind={','.join(map(str, nodes))}", *script]
    return script


def main(argv: Sequence[str] | None = None) -> int:
    """Run the launcher; return the first exit status that is not 0, else 0."""
    parser = argparse.ArgumentParser("run_cpu", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ncores", type=int, help="cores for each instance; an equal share of all by default")
    parser.add_argument("--ninstances", type=int, default=1, help="how many instances run at once")
    parser.add_argument("--node", type=int, help="take cores of this node of memory alone")
    parser.add_argument("--use-logical-cores", action="store_true", help="count hyper-threads as cores")
    parser.add_argument("--allocator", choices=("auto", "tcmalloc", "jemalloc", "default"), default="auto")
    parser.add_argument("--dry-run", action="store_true", help="print what would be run")
    parser.add_argument("-m", "--module", action="store_true", help="the script is the name of a module")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="and its arguments")
    arguments = parser.parse_args(argv)
    if not arguments.script:
        parser.error("name a script to run")
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    try:
        shares = choose(
            cores(list(usable)), arguments.ninstances, arguments.ncores, arguments.node, arguments.use_logical_cores
        )
        library = allocator(arguments.allocator)
    except ValueError as error:
        parser.error(str(error))
    running = []
    for number, share in enumerate(shares):
        made = environment(os.environ, share, number, len(shares), library)
        line, numbers = command(arguments, share), {core.number for core in share}
        print(f"instance {number}: cores {sorted(numbers)}: {' '.join(line)}", file=sys.stderr)
        if not arguments.dry_run:
            pin = (
                (lambda numbers=numbers: os.sched_setaffinity(0, numbers)) if hasattr(os, "sched_setaffinity") else None
            )
            running.append(subprocess.Popen(line, env=made, preexec_fn=pin))
    try:
        return next((status for status in [each.wait() for each in running] if status), 0)
    except KeyboardInterrupt:
        for each in running:
            each.terminate()
        return 130


if __name__ == "__main__":
    sys.exit(main())
