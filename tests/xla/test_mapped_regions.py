"""Processes with thousands of programs: Linux limits the number of memory regions of a process."""

import logging
import sys

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends.xla import mapped_regions

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a limit of Linux")


@pytest.fixture
def allow(monkeypatch):
    """Set how many more memory regions the process may have."""
    ft.clear_caches()

    def set_limit(more):
        most = mapped_regions.count() + more
        crowded = 1 - more / most / 2
        values = {"limit": lambda: most, "_CROWDED": crowded, "_due": 0, "_noticed": False}
        for name, value in values.items():
            monkeypatch.setattr(mapped_regions, name, value)
        return most

    return set_limit


def test_programs_are_dropped_before_there_are_too_many(allow, caplog):
    most = allow(800)
    with caplog.at_level(logging.WARNING, "functorch_like"):
        for n in range(1, 400):
            assert fnp.sum(np.ones(n)) == n
            assert mapped_regions.count() < most
    notes = [r.getMessage() for r in caplog.records if "memory regions" in r.getMessage()]
    assert len(notes) == 1
    assert "sysctl vm.max_map_count" in notes[0]


def test_programs_may_be_dropped_while_a_function_is_traced(allow):
    allow(300)

    @ft.jit
    def total(x):
        for n in range(1, 60):  # eager, as its operand is known
            x = x + fnp.cumsum(np.ones(n))[-1]
        return x

    inner = ft.jit(lambda x: ft.grad(lambda y: total(y) * y)(x))
    assert total(np.float32(0)) == sum(range(1, 60))
    assert inner(np.float32(1)) == sum(range(1, 60)) + 2


def test_programs_that_are_held_are_an_error(allow):
    allow(400)
    held = []

    def hold(count):
        for n in range(1, count):
            held.append(ft.jit(lambda x: fnp.cumsum(x)).lower(np.ones(n)).compile())

    with pytest.raises(ft.errors.OutOfMemoryError, match=r"memory regions, of the .* that Linux allows") as info:
        hold(300)
    assert "vm.max_map_count" in str(info.value)
    assert len(held) > 10
    assert held[9](np.ones(10)).tolist() == list(range(1, 11))
