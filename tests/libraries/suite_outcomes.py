"""Plugin for pytest, used by suites.py: a line of JSON for each test, and no test that has one already."""

import json
import os

OUT = os.environ.get("SUITE_OUT")


def read(path):
    """Return the last outcome of each test in a file."""
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return {record["test"]: record["outcome"] for record in map(json.loads, file)}


def write(test, outcome, message="", seconds=0.0):
    """Add what became of a test to the file."""
    record = {"test": test, "file": test.split("::")[0], "outcome": outcome}
    with open(OUT, "a") as file:
        file.write(json.dumps(record | {"message": message[:2000], "seconds": round(seconds, 2)}) + "\n")


def pytest_collection_modifyitems(config, items):
    """Leave out every test but the Nth, those that ran before, and, if only failing ones are wanted, all others."""
    known = set(read(OUT))
    items[:] = [item for item in items[:: int(os.environ.get("SUITE_EVERY", "1"))] if item.nodeid not in known]
    if wanted := os.environ.get("SUITE_FAILING"):
        last = read(wanted)
        items[:] = [item for item in items if last.get(item.nodeid) in ("failed", "crashed")]


def pytest_runtest_protocol(item):
    """Say that a test starts: if nothing more is said of it, it ended its process."""
    write(item.nodeid, "crashed")


def pytest_runtest_logreport(report):
    """Say what a test, or a part of one, came to; of one that failed, why."""
    crash = getattr(report.longrepr, "reprcrash", None)
    message = crash.message if crash else str(report.longrepr or "")
    if hasattr(report, "wasxfail"):
        write(report.nodeid, "xfailed" if report.skipped else "xpassed", message, report.duration)
    elif report.when == "call" or not report.passed:
        write(report.nodeid, report.outcome, message, report.duration)


def pytest_collectreport(report):
    """Say that a file could not be collected."""
    if report.failed:
        write(report.nodeid, "failed", f"collection: {str(report.longrepr)[-1500:]}")
