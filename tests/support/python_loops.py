"""Square roots by loops that Python decides on, for tests of Python control flow under jit."""

import functorch_like.numpy as fnp


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
