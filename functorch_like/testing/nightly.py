"""Random programs in great number: `python -m functorch_like.testing.nightly KIND --count 100000`.

Kinds:

- `options`: products, reductions and convolutions, compiled under every option set that the package can choose;
- `lowerings`: primitives with fast lowerings, with these on and off;
- `steps`: long programs with loops, branches, custom rules and nested transformations.

Each result is compared with the program's meaning in NumPy in float64. A program that is wrong is reduced and printed
as a script; the exit status is then 1. Programs are identified by seed and number, so a run can be repeated. With
the same `--record`, an interrupted run goes on where it stopped; `--totals` sums up such a file.

A block of programs shares a process. If the process dies, the program it was at is reported, and another process goes
on with the program after it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from functorch_like.testing import differential, long_programs, lowering_programs, product_programs, program_laws
from functorch_like.testing.choices import Choices, shrink
from functorch_like.testing.source_programs import Program

#: Programs that one process computes: starting one costs as much as ten programs.
_BLOCK = 250
#: Programs that are tried to make one smaller.
_ATTEMPTS = 150


class Effort(NamedTuple):
    """Way to compile programs.

    Args:
        ways: number of option sets besides the default, taken in turn; None for all.
        quick: leave LLVM's optimisations out: four times faster, with the same calls of libraries.
    """

    ways: int | None = None
    quick: bool = False

    @property
    def options(self) -> dict[str, Any]:
        return differential.QUICK if self.quick else {}


class Kind(NamedTuple):
    """A kind of programs.

    Args:
        draw: makes a program of choices.
        check: `(program, number, effort) -> messages`, one for each defect.
    """

    draw: Callable[[Choices], Program]
    check: Callable[[Program, int, Effort], list[str]]


def _under_options(program: Program, number: int, effort: Effort) -> list[str]:
    """Check a program under the default options, and under others in turn."""
    default, *others = differential.candidates()
    ways = len(others) if effort.ways is None else min(effort.ways, len(others))
    chosen = [others[(number * ways + k) % len(others)] for k in range(ways)]
    return differential.check(program, [default, *chosen], effort.options)


def _by_lowerings(program: Program, number: int, effort: Effort) -> list[str]:
    return differential.check(program, [differential.DEFAULT, differential.STANDARD], effort.options)


def _by_laws(program: Program, number: int, effort: Effort) -> list[str]:
    return program_laws.check(program, eager=number % 4 == 0, mapped=number % 3 == 0, options=effort.options)


_ALL = Effort()
KINDS = {
    "options": Kind(product_programs.draw, _under_options),
    "lowerings": Kind(lowering_programs.draw, _by_lowerings),
    "steps": Kind(long_programs.draw, _by_laws),
}


class Finding(NamedTuple):
    """A wrong program.

    Args:
        number: the program's number.
        messages: one for each defect.
        script: the smallest program found that is wrong, too.
    """

    number: int
    messages: list[str]
    script: str


def examine(kind: str, seed: int, number: int, effort: Effort = _ALL, attempts: int = _ATTEMPTS) -> Finding | None:
    """Draw one program and check it.

    Args:
        kind: a key of `KINDS`.
        seed: of the run.
        number: the program's number.
        effort: amount of work for it.
        attempts: number of smaller programs to try where it is wrong.

    Returns:
        The finding, or None.

    Raises:
        Refused: if the drawn program is not valid.

    >>> examine("options", seed=0, number=0, effort=Effort(ways=0))
    """
    draw, check = KINDS[kind]
    program = draw(Choices(f"{kind} {seed} {number}"))
    messages = _messages(check, program, number, effort)
    if not messages:
        return None

    def fails(made: list[int]) -> bool:
        try:
            again = _messages(check, draw(Choices(replay=made)), number, effort)
        except differential.Refused:
            return False
        return bool(again) and _sort(again) == _sort(messages)

    smallest = draw(Choices(replay=shrink(program.made, fails, attempts)))
    return Finding(number, _messages(check, smallest, number, effort) or messages, smallest.script)


def _messages(check: Any, program: Program, number: int, effort: Effort) -> list[str]:
    """Return a message for each defect, errors that the program should not raise included."""
    try:
        return check(program, number, effort)
    except differential.Refused:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return [
            f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''} ({frame.name}:{frame.lineno})"
        ]


def _sort(messages: list[str]) -> str:
    """Return a rough key of a defect: the law or the way that is broken, or the error and its line."""
    kind, _, rest = messages[0].partition(":")
    return f"{kind} {rest.rpartition('(')[2]}" if kind.endswith("Error") else kind


def _block(kind: str, seed: int, numbers: range, effort: Effort) -> Iterator[dict[str, Any]]:
    """Check some programs; yield a line before each one, and one more if it is wrong."""
    gc.freeze()  # imported modules stay
    for number in numbers:
        yield {"checking": number, "cpu": round(time.process_time(), 3)}
        try:
            finding = examine(kind, seed, number, effort)
        except differential.Refused as error:
            yield {"refused": number, "why": str(error).splitlines()[0]}
            continue
        if finding is not None:
            yield finding._asdict()
    yield {"cpu": round(time.process_time(), 3)}


class _Ended(NamedTuple):
    """Output and end of a process.

    Args:
        lines: of `_block`.
        status: exit status.
        errors: the end of its standard error.
    """

    lines: list[dict[str, Any]]
    status: int
    errors: str


def _in_a_process(kind: str, seed: int, numbers: range, effort: Effort) -> _Ended:
    """Check some programs in a process of their own, which a program may crash."""
    name = __name__ if __name__ != "__main__" else "functorch_like.testing.nightly"
    command = [sys.executable, "-P", "-m", name, kind]
    command += ["--seed", str(seed), "--block", str(numbers.start), str(numbers.stop)]
    command += [] if effort.ways is None else ["--ways", str(effort.ways)]
    command += ["--quick"] if effort.quick else []
    # Memory is filled, so that reads before a write show; there is no cache on disk, because no program comes twice.
    environment = {**os.environ, "MALLOC_PERTURB_": "85", "FT_CACHE": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{") and line.endswith("}")]
    return _Ended(lines, done.returncode, done.stderr[-500:])


def _run_block(kind: str, seed: int, numbers: range, effort: Effort) -> dict[str, Any]:
    """Check some programs; where one kills its process, go on after it in another."""
    started, left = time.monotonic(), numbers
    lines: list[dict[str, Any]] = []
    cpu = 0.0
    while left:
        ended = _in_a_process(kind, seed, left, effort)
        checked = [line["checking"] for line in ended.lines if "checking" in line]
        lines += ended.lines
        cpu += max((line["cpu"] for line in ended.lines if "cpu" in line), default=0.0)
        if not ended.status:
            break
        if not checked:
            raise RuntimeError(f"no program was begun ({ended.status}): {ended.errors}")
        lines.append({
            "number": checked[-1], "messages": [f"died ({ended.status}): {ended.errors}"],
            "script": _script(kind, seed, checked[-1]),
        })  # fmt: skip
        left = range(checked[-1] + 1, numbers.stop)
    return {
        "kind": kind, "seed": seed, "ways": effort.ways, "quick": effort.quick,
        "start": numbers.start, "stop": numbers.stop, "checked": sum("checking" in line for line in lines),
        "refused": sum("refused" in line for line in lines), "wrong": [line for line in lines if "messages" in line],
        "seconds": round(time.monotonic() - started, 1), "cpu": round(cpu, 1),
    }  # fmt: skip


def _script(kind: str, seed: int, number: int) -> str:
    """Return a program as it was drawn: one that kills its process is not made smaller."""
    return KINDS[kind].draw(Choices(f"{kind} {seed} {number}")).script


def recorded(record: Path | None, kind: str, seed: int, effort: Effort) -> list[dict[str, Any]]:
    """Read the blocks of a run from its record."""
    if record is None or not record.exists():
        return []
    run = (kind, seed, effort.ways, effort.quick)
    blocks = [json.loads(line) for line in record.read_text().splitlines()]
    return [b for b in blocks if (b["kind"], b["seed"], b["ways"], b["quick"]) == run]


def totals(kind: str, blocks: Sequence[dict[str, Any]]) -> str:
    """Sum up blocks in one line."""
    programs, refused = sum(b["checked"] for b in blocks), sum(b["refused"] for b in blocks)
    wrong = sum(len(b["wrong"]) for b in blocks)
    seconds, cpu = sum(b["seconds"] for b in blocks), sum(b["cpu"] for b in blocks)
    each = f", {cpu / programs:.3f} s each" if programs else ""
    return f"{kind}: {programs} programs, {refused} refused, {wrong} wrong, {seconds:.0f} s, {cpu:.0f} s of CPU{each}"


def run(
    kind: str, count: int, *, seed: int = 0, workers: int = 1, effort: Effort = _ALL, record: Path | None = None
) -> list[dict[str, Any]]:
    """Check many programs in several processes, and print what is found.

    Args:
        kind: a key of `KINDS`.
        count: programs.
        seed: of the run.
        workers: processes at a time.
        effort: how they are compiled.
        record: a file of what is done; blocks in it are not done again.

    Returns:
        A record for each block.
    """
    before = [b for b in recorded(record, kind, seed, effort) if b["stop"] <= count]
    known = {number for b in before for number in range(b["start"], b["stop"])}
    blocks = list(_runs([number for number in range(count) if number not in known]))
    done = list(before)
    with ThreadPoolExecutor(workers) as pool:
        for result in pool.map(lambda numbers: _run_block(kind, seed, numbers, effort), blocks):
            done.append(result)
            if record is not None:
                with record.open("a") as file:
                    file.write(json.dumps(result) + "\n")
            for wrong in result["wrong"]:
                print(f"{kind} {seed} {wrong['number']}: {'; '.join(wrong['messages'])}\n{wrong['script']}", flush=True)
    return done


def _runs(numbers: Sequence[int]) -> Iterator[range]:
    """Split ascending numbers into blocks without gaps."""
    start = 0
    for k in range(1, len(numbers) + 1):
        if k == len(numbers) or numbers[k] != numbers[k - 1] + 1 or numbers[k] % _BLOCK == 0:
            yield range(numbers[start], numbers[k - 1] + 1)
            start = k


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m functorch_like.testing.nightly",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=1000, help="programs")
    parser.add_argument("--seed", type=int, default=0, help="another one draws other programs")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--ways", type=int, help="ways to compile besides the default, in turn; all if left out")
    parser.add_argument("--quick", action="store_true", help="without LLVM's optimisations: four times faster")
    parser.add_argument("--record", type=Path, help="a file of what is done, for a run that goes on")
    parser.add_argument("--totals", action="store_true", help="sum up the record, and check nothing")
    parser.add_argument("--number", type=int, help="check this program alone")
    parser.add_argument("--block", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    effort = Effort(options.ways, options.quick)
    if options.block:
        for line in _block(options.kind, options.seed, range(*options.block), effort):
            print(json.dumps(line), flush=True)
        return 0
    if options.number is not None:
        try:
            finding = examine(options.kind, options.seed, options.number, effort)
        except differential.Refused as error:
            print(f"refused: {error}")
            return 0
        print("right" if finding is None else f"{'; '.join(finding.messages)}\n{finding.script}")
        return finding is not None
    if options.totals:
        done = recorded(options.record, options.kind, options.seed, effort)
    else:
        how = {"seed": options.seed, "workers": options.workers, "effort": effort, "record": options.record}
        done = run(options.kind, options.count, **how)
    print(totals(options.kind, done))
    return any(b["wrong"] for b in done)


if __name__ == "__main__":
    sys.exit(main())
