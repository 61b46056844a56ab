"""Helper for tests that functions, programs and tracers die."""

import gc

import numpy as np

import functorch_like.numpy as fnp
from support import background


def collect():
    """Free what nothing refers to. The background thread keeps the program that it compiles, so wait for it first."""
    background.finish()
    for _ in range(4):  # C++ releases Python objects in its next call, one layer at a time
        gc.collect()
        fnp.asarray(np.ones(1))
