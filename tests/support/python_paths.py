"""Functions with Python branches and loops on their values, for tests of Python control flow under jit."""

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp

POSITIVE = np.ones(3, np.float32)


def paths(fun, **options):
    return ft.jit(fun, control_flow="paths", **options)


def branch(x):
    if fnp.sum(x) > 0:
        return fnp.sum(x**3)
    return fnp.sum(fnp.sqrt(-x))


def newton(a):
    x = a
    while fnp.abs(x * x - a) > 1e-4:
        x = 0.5 * (x + a / x)
    return x


def bisect(a):
    lo, hi = a * 0, a
    while hi - lo > 1e-3:
        mid = (lo + hi) / 2
        if mid * mid > a:
            hi = mid
        else:
            lo = mid
    return lo
