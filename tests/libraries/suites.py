"""Run the test suite of a library written for JAX, on this package and on JAX, and compare test by test.

    python suites.py run SOURCE OUT [FILE ...] [--jax]    # SOURCE: the library's source; FILE: or a folder in it
    python suites.py compare OURS JAX                     # two files that `run` wrote

`run` fetches nothing. Each test file runs in a process of its own with this interpreter, by `functorch_like.as_jax`.
With `--jax` it runs on JAX itself, which the environment must have. One line of JSON for each test goes to OUT. Tests
that are there already do not run again, so a stopped run continues. A test that ends its process fails; the others
still run.

`--failing OURS`, with `--jax`, runs only the tests that did not pass in OURS, to see if they pass on JAX.
`--every N` takes every Nth test of each file, in the order of collection: the same tests on both sides.
`--together` runs every Nth test of all files in one process: faster where a sample has few tests of each file.
`--timeout S` stops a test after S seconds (pytest-timeout). Arguments after `--` go to pytest.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ATTEMPTS = 20  # processes that a test file may end


def outcomes(path):
    """Return the outcome of each test in a file: failed if a part of it failed, crashed if it only started."""
    known = {}
    if Path(path).exists():
        for line in Path(path).read_text().splitlines():
            record = json.loads(line)
            if known.get(record["test"], record)["outcome"] != "failed":
                known[record["test"]] = record
    return known


def tests(folder):
    """Return the test files in a folder."""
    return {file for name in ("test_*.py", "*_test.py") for file in folder.rglob(name)}


def bad(record):
    """Return True if a test did not pass."""
    return record["outcome"] in ("failed", "crashed")


def run(options):
    """Run the files of a suite, each in a process of its own."""
    source, out = options.source.resolve(), options.out.resolve()
    asked = [source / name for name in options.files] or [source]
    files = [file for path in asked for file in (sorted(tests(path)) if path.is_dir() else [path])]
    environment = dict(os.environ, SUITE_OUT=str(out), SUITE_EVERY=str(options.every))
    if options.failing:
        environment["SUITE_FAILING"] = str(options.failing.resolve())
        files = [source / name for name in sorted({r["file"] for r in outcomes(options.failing).values() if bad(r)})]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, *([] if options.jax else ["-m", "functorch_like.as_jax"]), "-m", "pytest"]
    command += ["-p", "suite_outcomes", "-p", "no:cacheprovider", "-q", "--tb=short"]
    command += ["--continue-on-collection-errors"]
    command += [f"--timeout={options.timeout}", *options.pytest]
    for group in [files] if options.together and files else [[file] for file in files]:
        for _ in range(ATTEMPTS):
            log = out.with_suffix(".log").open("a")
            known = len(outcomes(out))
            status = subprocess.run(
                [*command, *map(str, group)], cwd=source, env=environment, stdout=log, stderr=log
            ).returncode
            # 0 to 5 are pytest's own statuses. After a crash, the next process starts behind the test that crashed.
            if 0 <= status <= 5 or len(outcomes(out)) == known:
                break
        names = [str(file.relative_to(source)) for file in group]
        counts = Counter(record["outcome"] for record in outcomes(out).values() if record["file"] in names)
        print(names[0] if len(names) == 1 else f"{len(names)} files", status, dict(counts), flush=True)


def compare(ours, theirs):
    """Print how many of the tests that pass on JAX pass here, and list those that fail.

    A test that passes here and did not run on JAX counts as one that passes on both.
    """
    ours, theirs = outcomes(ours), outcomes(theirs)
    both = [test for test, record in ours.items() if record["outcome"] == "passed"]
    both = [test for test in both if theirs.get(test, ours[test])["outcome"] == "passed"]
    failing = [test for test in ours if bad(ours[test]) and theirs.get(test, {}).get("outcome") == "passed"]
    print("here:", dict(Counter(record["outcome"] for record in ours.values())))
    print("JAX: ", dict(Counter(record["outcome"] for record in theirs.values())))
    for test in failing:
        print(f"  {test}: {ours[test]['message'].splitlines()[0][:160] if ours[test]['message'] else 'crashed'}")
    for test in ours:
        if bad(ours[test]) and test not in theirs:
            print(f"  {test}: not run on JAX")
    total = len(both) + len(failing)
    print(f"of {total} that pass on JAX, {len(both)} pass here: {100 * len(both) / max(total, 1):.1f} %")


def main(argv):
    """Run the command of the command line."""
    argv, extra = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("source", type=Path)
    one.add_argument("out", type=Path)
    one.add_argument("files", nargs="*")
    one.add_argument("--jax", action="store_true")
    one.add_argument("--failing", type=Path)
    one.add_argument("--every", type=int, default=1)
    one.add_argument("--together", action="store_true")
    one.add_argument("--timeout", type=int, default=120)
    one.set_defaults(act=run, pytest=extra)
    two = commands.add_parser("compare")
    two.add_argument("ours", type=Path)
    two.add_argument("jax", type=Path)
    two.set_defaults(act=lambda options: compare(options.ours, options.jax))
    options = parser.parse_args(argv)
    options.act(options)


if __name__ == "__main__":
    main(sys.argv[1:])
