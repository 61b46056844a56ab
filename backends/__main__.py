"""`python -m functorch_like.backends`: everything that a bug report needs.

`--markdown FILE` writes the page of the documentation on settings.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from functorch_like.backends.report import bug_report
from functorch_like.backends.settings_page import markdown
from functorch_like.interrupts import end_with_the_reader


def main(arguments: Sequence[str]) -> int:
    """Print the report, or write the page; return the exit status."""
    if not arguments:
        sys.stdout.write(bug_report() + "\n")
        return 0
    if len(arguments) == 2 and arguments[0] == "--markdown":
        Path(arguments[1]).write_text(markdown(), encoding="utf-8")
        return 0
    print("usage: python -m functorch_like.backends [--markdown FILE]", file=sys.stderr)
    return 2


if __name__ == "__main__":
    end_with_the_reader()
    sys.exit(main(sys.argv[1:]))
