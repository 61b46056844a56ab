"""Type variables of functions that take functions."""

from __future__ import annotations

from typing import ParamSpec, TypeVar

#: Parameters and result of a user's function.
P = ParamSpec("P")
R = TypeVar("R")
#: Its first argument, and of a pair that it returns with `has_aux` the second.
T = TypeVar("T")
Aux = TypeVar("Aux")
#: What a loop carries, reads and stacks.
Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")
