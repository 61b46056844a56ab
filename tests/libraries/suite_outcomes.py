"""Pytest plugin of suites.py: write a line of JSON for each test, and skip tests that have one already."""

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
    """Append the outcome of a test to the file."""
    record = {"test": test, "file": test.split("::")[0], "outcome": outcome}
    with open(OUT, "a") as file:
        file.write(json.dumps(record | {"message": message[:2000], "seconds": round(seconds, 2)}) + "\n")


def pytest_collection_modifyitems(config, items):
    """Keep every Nth test if it has not run before; with SUITE_FAILING, only tests that failed in that file."""
    known = set(read(OUT))
    items[:] = [item for item in items[:: int(os.environ.get("SUITE_EVERY", "1"))] if item.nodeid not in known]
    if wanted := os.environ.get("SUITE_FAILING"):
        last = read(wanted)
        items[:] = [item for item in items if last.get(item.nodeid) in ("failed", "crashed")]


def pytest_runtest_protocol(item):
    """Record a test as crashed when it starts; a later record replaces this unless the test ends its process."""
    write(item.nodeid, "crashed")


def pytest_runtest_logreport(report):
    """Record the outcome of a test or of one of its phases, with the message of a failure."""
    crash = getattr(report.longrepr, "reprcrash", None)
    message = crash.message if crash else str(report.longrepr or "")
    if hasattr(report, "wasxfail"):
        write(report.nodeid, "xfailed" if report.skipped else "xpassed", message, report.duration)
    elif report.when == "call" or not report.passed:
        write(report.nodeid, report.outcome, message, report.duration)


def pytest_collectreport(report):
    """Record that a file could not be collected."""
    if report.failed:
        write(report.nodeid, "failed", f"collection: {str(report.longrepr)[-1500:]}")
