"""Tokens: `lax.create_token`, `lax.after_all`. They order no effects: ordered effects of the package need none."""

from __future__ import annotations

from typing import Any

from functorch_like import lax, tree
from functorch_like import numpy as fnp
from functorch_like.errors import ArgumentError


class Token:
    """A value without contents, which functions of JAX take and return beside arrays; a pytree of an empty array."""

    def __init__(self, contents: Any) -> None:
        self._contents = contents

    def block_until_ready(self) -> Token:
        """Return the token."""
        return self

    def __repr__(self) -> str:
        return "Token()"


tree.register_pytree_node(Token, lambda token: ((token._contents,), None), lambda _, contents: Token(contents[0]))


def create_token(_: Any = None) -> Token:
    """Return a new token."""
    return Token(fnp.zeros((0,), bool))


def after_all(*operands: Token) -> Token:
    """Return a token that is made after others.

    Raises:
        ArgumentError: for anything but tokens.
    """
    for operand in operands:
        if not isinstance(operand, Token):
            raise ArgumentError(f"lax.after_all got {operand!r:.60}", fix="give tokens of lax.create_token")
    return Token(lax.optimization_barrier([t._contents for t in (*operands, create_token())])[-1])
