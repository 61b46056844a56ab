"""`jax.experimental.checkify`."""

from __future__ import annotations

import re
from typing import Any

from functorch_like import checkify
from functorch_like.errors import CheckError

JaxRuntimeError = CheckError
ErrorCategory = Any

_WHERE = re.compile(r"(?:(?:at mapped index [\d, ]+|in step \d+ of \w+): )+")


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Check a condition under `checkify` alone."""
    checkify.check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Any) -> None:
    """Raise as `ft.checkify.check_error` does, with the user's message first, then the step or element that failed."""
    try:
        checkify.check_error(error)
    except CheckError as failed:
        where = _WHERE.match(text := failed.args[0])
        if where is None:
            raise
        message = f"{text[where.end() :]} ({where[0].removesuffix(': ')})"
        raise CheckError(message, at=failed.at) from None
