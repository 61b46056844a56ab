"""Find the smallest part of a program that fails: `python -m functorch_like.minify file.py:function`.

    python -m functorch_like.minify file.py:function [--fails KIND] [--args NAME] [--out FILE]

The command runs the file and calls the function on the file's variable `args` (or NAME): a tuple, or a function that
returns one. KIND is error, abort, nan, mismatch (the default) or nondeterminism; see `ft.debug.minify`.
The result is written to FILE, `failing.py` by default, as a script that runs on its own.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from typing import Any

from functorch_like import debug
from functorch_like.errors import ArgumentError, FtError


def main(argv: list[str]) -> int:
    """Run the command; return the exit status: 1 where the program does not fail or cannot be written."""
    text = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser("python -m functorch_like.minify", description=text[0])
    parser.add_argument("target", metavar="file.py:function")
    parser.add_argument("--fails", default="mismatch", help="error, abort, nan, mismatch or nondeterminism")
    parser.add_argument("--args", default="args", help="name of the arguments in the file")
    parser.add_argument("--out", default="failing.py", help="file for the script")
    options = parser.parse_args(argv)
    try:
        function, args = _target(options.target, options.args)
        small = debug.minify(function, options.fails, verbose=True)(*args)
        small.save(options.out)
    except FtError as e:
        print(e, file=sys.stderr)
        return 1
    print(f"{small}\n\n{small.equations[0]} equations to {small.equations[1]}, {small.tried} programs run")
    print(f"the script is in {options.out}")
    return 0


def _target(target: str, name: str) -> tuple[Any, tuple[Any, ...]]:
    path, _, function = target.rpartition(":")
    if not path:
        raise ArgumentError(f"{target!r} names no function", fix="python -m functorch_like.minify file.py:function")
    namespace = runpy.run_path(path, run_name="__minify__")
    if function not in namespace:
        raise ArgumentError(f"{path} has no function {function!r}", fix=f"it has {', '.join(_functions(namespace))}")
    args = namespace.get(name, ())
    args = args() if callable(args) else args
    return namespace[function], args if isinstance(args, tuple) else (args,)


def _functions(names: dict[str, Any]) -> list[str]:
    return [name for name, value in names.items() if callable(value) and not name.startswith("_")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
