"""Minimum cuts, compared with all cuts of small graphs."""

import itertools

import numpy as np
import pytest

from functorch_like.primitives.higher_order.checkpoint.mincut import INFINITE, Network


@pytest.mark.parametrize("seed", range(30))
def test_a_cut_is_the_cheapest(seed):
    rng = np.random.default_rng(seed)
    nodes = 7
    edges = [
        (a, b, INFINITE if rng.random() < 0.1 else int(rng.integers(0, 20)))
        for a, b in itertools.permutations(range(nodes), 2)
        if rng.random() < 0.4 and (a, b) != (0, nodes - 1)
    ]
    edges.append((0, nodes - 1, 3))
    price = lambda side: sum(c for a, b, c in edges if a in side and b not in side)
    inner = range(1, nodes - 1)
    sides = [{0, *chosen} for k in range(nodes - 1) for chosen in itertools.combinations(inner, k)]
    cheapest = min(map(price, sides))
    if cheapest >= INFINITE:
        pytest.skip("no cut is finite")
    network = Network()
    for _ in range(nodes):
        network.node()
    for edge in edges:
        network.edge(*edge)
    found = network.cut(0, nodes - 1)
    assert 0 in found and nodes - 1 not in found
    assert price(found) == cheapest
