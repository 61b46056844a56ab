"""Facts from bytecode about a function at one instruction: the names that may be read later, and the value stack.

Python gives access to the local names of a running frame, and not to its value stack. The bytecode shows what kind of
values the stack holds. Iterators of `for i in range(...)` are known by the value of `i`; other values are hidden.
"""

from __future__ import annotations

import bisect
import dis
import functools
import inspect
import re
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple


class With(NamedTuple):
    """Entry of the stack that a `with` block calls at its end.

    Attributes:
        offset: of the instruction that entered the block.
    """

    offset: int


Stack = tuple[Any, ...]  # of each entry the offset of the GET_ITER that made it, a With, or None

_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_ENDS = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_TESTS = re.compile(r"POP_JUMP|JUMP_IF_|TO_BOOL|UNARY_NOT")
_IN_RANGE = frozenset(
    {"LOAD_CONST", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_ATTR", "BINARY_SUBSCR", "BINARY_OP", "PUSH_NULL", "PRECALL"}
)  # fmt: skip


class Point(NamedTuple):
    """One instruction of a function, while it is executed.

    Attributes:
        where: the instruction, as its place in the source: a test may have two copies in the bytecode, before a loop
            and at its end.
        live: the local names that may be read later.
        counters: the variables of the enclosing loops over ranges.
        withs: the enclosing `with` blocks.
    """

    where: Any
    live: frozenset[str]
    counters: frozenset[str]
    withs: frozenset[With]


def point(code: CodeType, last: int, *, test: bool) -> Point | None:
    """Return the facts about a function at an instruction; None where its value stack holds something hidden.

    Args:
        code: the function's.
        last: `f_lasti` of its frame.
        test: whether the instruction tests a truth value; otherwise it calls a function.
    """
    return None if code.co_flags & _GENERATORS else _flow(code).point(last, test)


def entered_once(code: CodeType, last: int) -> frozenset[With]:
    """Return the `with` blocks around an instruction that a call of the function enters at most once: in no loop."""
    return _flow(code).entered_once(last)


@functools.lru_cache(maxsize=512)
def _flow(code: CodeType) -> _Flow:
    return _Flow(code)


class _Flow:
    """The instructions of a function, with the value stack before and the live names after each."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.instructions = list(dis.get_instructions(code))
        self.offsets = [i.offset for i in self.instructions]
        self.places = {offset: k for k, offset in enumerate(self.offsets)}
        self.stores: dict[str, list[int]] = {}
        for i in self.instructions:
            for kind, name in _names(i):
                if kind == "STORE":
                    self.stores.setdefault(name, []).append(i.offset)
        self.stacks = self._all_stacks()
        self.live = self._all_live()
        self.alike: dict[Any, list[int]] = {}  # instructions at which a state may be read, by their positions
        for k, i in enumerate(self.instructions):
            if _stops(i):
                self.alike.setdefault(self._source(k), []).append(k)

    def point(self, last: int, test: bool) -> Point | None:
        k = bisect.bisect_right(self.offsets, last) - 1
        i = self.instructions[k]
        stack = self.stacks.get(k)
        if stack is None or not (_tests(i) if test else i.opname.startswith("CALL")):
            return None
        # Tests and calls have their operands on top of the stack, and leave at most one result in their place.
        rest = stack[:-1] if test and i.opname != "COMPARE_OP" else _after(i, stack, False)[:-1]
        withs = frozenset(entry for entry in rest if isinstance(entry, With))
        counters = [self._counter(entry) for entry in rest if not isinstance(entry, With)]
        if None in counters:
            return None
        return Point(self._place(k), self.live[k], frozenset(name for name in counters if name), withs)

    def entered_once(self, last: int) -> frozenset[With]:
        stack = self.stacks.get(bisect.bisect_right(self.offsets, last) - 1, ())
        return frozenset(e for e in stack if isinstance(e, With) and not self._is_in_loop(e.offset))

    def _is_in_loop(self, offset: int) -> bool:
        back = [(i.argval, i.offset) for i in self.instructions if "BACKWARD" in i.opname]
        return any(to <= offset <= at for to, at in back)

    def _place(self, k: int) -> Any:
        """Return the place of an instruction in the source, or its offset where that place may not be unique."""
        source = self._source(k)
        if self.code.co_exceptiontable or source is None:  # copies of a `finally` block go on in other ways
            return self.offsets[k]
        alike = self.alike[source]
        # Code that was generated may have one position for all of its tests.
        copies = len(alike) < 3 and len({self._operand(j) for j in alike}) == 1
        return source if copies else self.offsets[k]

    def _source(self, k: int) -> Any:
        """Return the positions of an instruction and of the one that makes its operand; None where these are unknown.

        TRAP: in Python 3.11 the second test of `a and b` has the position of the first; the instruction that computes
        `b` has its own.
        """
        pair = [self.instructions[j].positions for j in (k, self._before(k))]
        return None if any(p is None or p.col_offset is None for p in pair) else tuple(pair)

    def _before(self, k: int) -> int:
        """Return the instruction before one, past EXTENDED_ARG, which holds the upper bits of an operand."""
        k -= 1
        while k > 0 and self.instructions[k].opname == "EXTENDED_ARG":
            k -= 1
        return max(k, 0)

    def _operand(self, k: int) -> tuple[Any, ...]:
        """Return the instructions that compute the operand of a test, which are equal in two copies of it."""
        j = self._before(k)
        whole, result = _span(self.instructions[j]), []
        while j > 0 and _within(_span(self.instructions[j]), whole):
            i = self.instructions[j]
            result.append((i.opname, None if i.opcode in _JUMPS else i.argrepr))
            j = self._before(j)
        return tuple(result)

    def _following(self, k: int) -> Iterator[tuple[int, bool]]:
        i = self.instructions[k]
        if i.opcode in _JUMPS:
            yield self.places[i.argval], True
        always = i.opname.startswith("JUMP_") and "_IF_" not in i.opname
        if i.opname not in _ENDS and not always and k + 1 < len(self.instructions):
            yield k + 1, False

    def _all_stacks(self) -> dict[int, Stack]:
        stacks: dict[int, Stack] = {0: ()}
        todo = [0]
        while todo:
            k = todo.pop()
            for target, jumps in self._following(k):
                if target not in stacks:
                    stacks[target] = _after(self.instructions[k], stacks[k], jumps)
                    todo.append(target)
        return stacks

    def _all_live(self) -> list[frozenset[str]]:
        code = self.code
        always = frozenset((*code.co_cellvars, *code.co_freevars))
        if code.co_exceptiontable:  # handlers may read locals that nothing else reads
            return [always | frozenset(code.co_varnames)] * len(self.instructions)
        before: list[frozenset[str]] = [always] * len(self.instructions)
        after = list(before)
        changed = True
        while changed:
            changed = False
            for k in reversed(range(len(self.instructions))):
                after[k] = always.union(*(before[t] for t, _ in self._following(k)))
                names = after[k]
                for kind, name in reversed(_names(self.instructions[k])):
                    names = names | {name} if kind == "LOAD" else names - {name}
                if names != before[k]:
                    before[k], changed = names, True
        return after

    def _counter(self, entry: int | None) -> str | None:
        """Return the loop variable of an iterator, where its value determines the iterator's state."""
        if entry is None:
            return None
        k = self.places[entry]
        loop = next((j for j in (k + 1, k + 2) if self.instructions[j].opname == "FOR_ITER"), None)
        if loop is None or not self._is_over_range(k):
            return None
        names = _names(self.instructions[loop + 1])
        if not names or names[0][0] != "STORE":
            return None
        start, end = self.offsets[loop], self.instructions[loop].argval
        inside = [at for at in self.stores[names[0][1]] if start < at < end]
        return names[0][1] if len(inside) == 1 else None

    def _is_over_range(self, k: int) -> bool:
        """Return True where the iterable is a call of range with arguments that keep their values."""
        if not self.instructions[k - 1].opname.startswith("CALL"):
            return False
        for i in reversed(self.instructions[max(k - 12, 0) : k - 1]):
            if i.opname == "LOAD_GLOBAL" and i.argval == "range":
                return True
            stable = all(self._is_stable(name, i.offset) for _, name in _names(i))
            if not (i.opname in _IN_RANGE or i.opname.startswith("LOAD_FAST")) or not stable:
                return False
        return False

    def _is_stable(self, name: str, offset: int) -> bool:
        """Return True where a name is bound once and for all."""
        stores, code = self.stores.get(name, []), self.code
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if name in parameters or not stores:
            return name in parameters and not stores
        back = [(i.argval, i.offset) for i in self.instructions if "JUMP_BACKWARD" in i.opname]
        return len(stores) == 1 and stores[0] < offset and not any(to <= stores[0] < at for to, at in back)


def _names(i: dis.Instruction) -> list[tuple[str, str]]:
    """Return the uses of local names by an instruction, in order: LOAD, STORE or DELETE, and the name."""
    kinds = re.findall("(LOAD|STORE|DELETE)_FAST", i.opname)
    names = i.argval if isinstance(i.argval, tuple) else (i.argval,)
    return list(zip(kinds, names, strict=False))


_Span = tuple[tuple[int, int], tuple[int, int]] | None


def _span(i: dis.Instruction) -> _Span:
    """Return the positions at which the source of an instruction begins and ends."""
    p = i.positions
    if p is None or p.lineno is None or p.end_lineno is None or p.col_offset is None or p.end_col_offset is None:
        return None
    return (p.lineno, p.col_offset), (p.end_lineno, p.end_col_offset)


def _within(inner: _Span, outer: _Span) -> bool:
    return inner is not None and outer is not None and outer[0] <= inner[0] and inner[1] <= outer[1]


def _stops(i: dis.Instruction) -> bool:
    """Return True for instructions at which a state may be read."""
    return _tests(i) or i.opname.startswith("CALL")


def _tests(i: dis.Instruction) -> bool:
    """Return True for an instruction that tests a truth value, or compares and tests the result (Python 3.13)."""
    if i.opname == "COMPARE_OP":
        return sys.version_info >= (3, 13) and bool((i.arg or 0) & 16)
    return _TESTS.match(i.opname) is not None


def _after(i: dis.Instruction, stack: Stack, jumps: bool) -> Stack:
    if i.opname == "GET_ITER":
        return (*stack[:-1], i.offset)
    if i.opname == "BEFORE_WITH":
        return (*stack[:-1], With(i.offset), None)
    if i.opname == "SWAP" and i.arg is not None:
        items = list(stack)
        items[-1], items[-i.arg] = items[-i.arg], items[-1]
        return tuple(items)
    effect = dis.stack_effect(i.opcode, i.arg, jump=jumps)
    return (*stack, *[None] * effect) if effect >= 0 else stack[:effect]
