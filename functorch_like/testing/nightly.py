"""Random programs in great number: `python -m functorch_like.testing.nightly KIND --count 100000`.

Kinds:

- `options`: products, reductions and convolutions, compiled under every option set that the package can choose;
- `lowerings`: primitives with fast lowerings, with these on and off;
- `steps`: long programs with loops, branches, custom rules and nested transformations.

Each result is held against the program's meaning in NumPy in float64. A program that is wrong is made small and printed
as a script; the exit status is then 1. Programs are identified by seed and number, so a run can be repeated. With
the same `--record`, one that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
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

#: Programs that one process computes.
_BLOCK = 50
#: Programs that are tried to make one smaller.
_ATTEMPTS = 150


class Effort(NamedTuple):
    """Way to compile programs.

    Args:
        ways: besides the default, in turn; None for all.
        quick: leave LLVM's optimisations out, which is four times faster and changes nothing of what goes to libraries.
    """

    ways: int | None = None
    quick: bool = False

    @property
    def options(self) -> dict[str, Any]:
        return differential.QUICK if self.quick else {}


class Kind(NamedTuple):
    """A kind of programs.

    Args:
        draw: makes one of choices.
        check: `(program, number, effort) -> messages`: what is wrong with it.
    """

    draw: Callable[[Choices], Program]
    check: Callable[[Program, int, Effort], list[str]]


def _under_options(program: Program, number: int, effort: Effort) -> list[str]:
    """The default, and others in turn."""
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
        number: of the program.
        messages: what is wrong.
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
        number: of the program.
        effort: how it is compiled.
        attempts: smaller programs that are tried where it is wrong.

    Returns:
        What was found, or None.

    Raises:
        Refused: if what was drawn is no program.

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
    """List what is wrong, errors that the program should not raise included."""
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
    """Check some programs; each gives a line before it is checked, and one more if it is wrong."""
    for number in numbers:
        yield {"checking": number}
        try:
            finding = examine(kind, seed, number, effort)
        except differential.Refused as error:
            yield {"refused": number, "why": str(error).splitlines()[0]}
            continue
        if finding is not None:
            yield finding._asdict()


def _run_block(kind: str, seed: int, numbers: range, effort: Effort) -> dict[str, Any]:
    """Check some programs in a process of their own, which may die of them."""
    command = [
        sys.executable,
        "-P",
        "-m",
        __name__ if __name__ != "__main__" else "functorch_like.testing.nightly",
        kind,
    ]
    command += ["--seed", str(seed), "--block", str(numbers.start), str(numbers.stop)]
    command += [] if effort.ways is None else ["--ways", str(effort.ways)]
    command += ["--quick"] if effort.quick else []
    # Memory never written shows as such; nothing is kept on disk, because no program comes twice.
    environment = {**os.environ, "MALLOC_PERTURB_": "85", "FT_CACHE": "0"}
    started = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    wrong = [line for line in lines if "messages" in line]
    checked = [line["checking"] for line in lines if "checking" in line]
    if done.returncode:
        last = checked[-1] if checked else numbers.start
        wrong.append({"number": last, "messages": [f"died ({done.returncode}): {done.stderr[-500:]}"], "script": ""})
    return {
        "kind": kind, "seed": seed, "start": numbers.start, "stop": numbers.stop, "checked": len(checked),
        "refused": sum("refused" in line for line in lines), "wrong": wrong,
        "seconds": round(time.monotonic() - started, 1),
    }  # fmt: skip


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
    before = [json.loads(line) for line in record.read_text().splitlines()] if record and record.exists() else []
    before = [b for b in before if (b["kind"], b["seed"]) == (kind, seed) and b["stop"] <= count]
    known = {b["start"] for b in before}
    blocks = [range(k, min(count, k + _BLOCK)) for k in range(0, count, _BLOCK) if k not in known]
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


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
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
    done = run(
        options.kind, options.count, seed=options.seed, workers=options.workers, effort=effort, record=options.record
    )
    wrong = sum(len(b["wrong"]) for b in done)
    seconds = sum(b["seconds"] for b in done)
    programs, refused = sum(b["checked"] for b in done), sum(b["refused"] for b in done)
    took = f"{seconds:.0f} s of {options.workers} processes"
    print(f"{options.kind}: {programs} programs, {refused} refused, {wrong} wrong, {took}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
