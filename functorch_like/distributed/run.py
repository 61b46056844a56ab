"""Start the processes of a program: `python -m functorch_like.distributed.run --nproc 4 script.py [arguments]`.

On several machines, once on each:

    python -m functorch_like.distributed.run --nproc 8 --nnodes 2 --node-rank 0 --coordinator HOST:PORT script.py

The script calls `ft.distributed.initialize()` without arguments. Each line that a process prints is marked with the
number of the process. When one fails, the others are ended, and the exit status is that of the first that failed.
SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to all processes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from functorch_like.backends.xla import processes
from functorch_like.distributed.coordinator import Coordinator, free_address, listen
from functorch_like.distributed.launch import Launch, command_of, device_variables, pass_signals_on
from functorch_like.distributed.lifecycle import LAUNCHER_HAS_COORDINATOR
from functorch_like.distributed.wire import split_address
from functorch_like.errors import DistributedError


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m functorch_like.distributed.run", description="Start the processes of a program."
    )
    parser.add_argument("--nproc", type=int, default=1, help="processes on this machine")
    parser.add_argument("--nnodes", type=int, default=1, help="machines, each with as many processes")
    parser.add_argument("--node-rank", type=int, default=0, help="the number of this machine, from 0")
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="an address of machine 0; needed for several")
    parser.add_argument("--cpu-devices", type=int, help="CPU devices of each process")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds to wait for all processes to start")
    parser.add_argument("--heartbeat-timeout", type=float, default=100.0, help="seconds of silence of a lost process")
    parser.add_argument("--grace", type=float, default=5.0, help="seconds for processes to end when one has failed")
    parser.add_argument("--bare", action="store_true", help="print lines without the number of the process")
    parser.add_argument("--elastic", action="store_true", help="replace workers that are lost; see elastic_loop")
    parser.add_argument("--min-workers", type=int, default=1, help="with --elastic: how many are needed to go on")
    parser.add_argument("--max-restarts", type=int, default=5, help="with --elastic: in a row, without progress")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", help="what each process runs")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the script")
    options = parser.parse_args(arguments)
    if options.nproc < 1 or options.nnodes < 1:
        parser.error("--nproc and --nnodes are at least 1")
    if options.elastic and options.node_rank > 0 and options.coordinator is None:
        parser.error("a machine that joins needs --coordinator HOST:PORT, an address of machine 0")
    if not 0 <= options.node_rank < options.nnodes and not (options.elastic and options.node_rank > 0):
        parser.error(f"--node-rank {options.node_rank} is not below --nnodes {options.nnodes}")
    if options.nnodes > 1 and options.coordinator is None:
        parser.error("several machines need --coordinator HOST:PORT, an address of machine 0")
    if options.coordinator is not None:
        try:
            split_address(options.coordinator)
        except ValueError:
            parser.error(f"--coordinator {options.coordinator!r} is not an address; write HOST:PORT")
    return options


def main(arguments: Sequence[str]) -> int:
    """Start the processes, wait for them, and return the exit status."""
    options = parse(arguments)
    if options.elastic:
        from functorch_like.distributed.elastic import launch as elastic_launch

        return elastic_launch.main(options)
    address = options.coordinator or free_address()
    count = options.nproc * options.nnodes
    environment = {"FT_COORDINATOR_ADDRESS": address, LAUNCHER_HAS_COORDINATOR: "1", **device_variables(options)}
    coordinator = None
    if options.node_rank == 0:
        try:
            coordinator = _coordinator(address, count, options)
        except DistributedError as error:
            print(f"functorch_like: {error}", file=sys.stderr)
            return 1
    launch = Launch(
        command_of(options),
        options.nproc,
        count,
        options.node_rank * options.nproc,
        environment,
        grace=options.grace,
        bare=options.bare,
    )
    pass_signals_on(launch)
    try:
        launch.start()
        return launch.wait()
    finally:
        if coordinator is not None:
            coordinator.close(options.grace if options.nnodes > 1 else 1.0)


def _coordinator(address: str, count: int, options: argparse.Namespace) -> Coordinator:
    return Coordinator(
        listen(address),
        address,
        count,
        lambda at: processes.start_service(at, count, max(1, int(options.timeout))),
        join_timeout=options.timeout,
        heartbeat_timeout=options.heartbeat_timeout,
        host_process=None,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
