"""Type variables of functions that take functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

#: Parameters of a user's function, its result, and the function itself.
P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
#: Its first argument, and the second part of the pair that it returns with `has_aux`. By the bound, editors take the
#: parameter of a lambda for Any; without it they refuse every operation on it.
T = TypeVar("T", bound=Any)
Aux = TypeVar("Aux")
#: The values that a loop carries, those that it reads, and those that it stacks.
Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")
