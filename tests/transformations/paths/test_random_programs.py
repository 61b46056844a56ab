"""Random programs give the results of plain Python, on both sides of their guards."""

import os

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.python_programs import made, programs

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors

#: Number of programs; for a long run, set FT_RANDOM_PROGRAMS=3000. Failing programs are not shrunk, because each
#: attempt compiles, which takes long.
COUNT = int(os.environ.get("FT_RANDOM_PROGRAMS", "8"))
VALUES = st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 7.0])

HOST = {"abs": lambda v: np.float32(abs(v)), "truth": bool}
HOST |= {"clip": lambda v: np.float32(min(max(np.float32(v), np.float32(-16)), np.float32(16)))}
DEVICE = {"abs": lambda v: fnp.abs(fnp.asarray(v, "float32")), "truth": lambda v: v}
DEVICE |= {"clip": lambda v: fnp.clip(fnp.asarray(v, "float32"), -16.0, 16.0)}


@settings(
    max_examples=COUNT, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(programs(), st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=5))
def test_programs_agree_with_python(source, points):
    plain, followed = made(source, HOST), ft.jit(made(source, DEVICE), control_flow="paths", max_paths=1000)
    for x, y in points * 2:
        want = plain(np.float32(x), np.float32(y))
        got = followed(np.float32(x), np.float32(y))
        assert np.float32(got) == np.float32(want), source


@settings(
    max_examples=COUNT, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(programs(), st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=5), st.booleans())
def test_programs_whose_values_are_unknown_agree_with_python(source, points, mapped):
    plain, whole = made(source, HOST), ft.jit(made(source, DEVICE), control_flow="paths")
    try:
        whole.trace(np.float32(1), np.float32(1))
    except errors.ConcretizationError as e:
        assert "both sides of its conditions are traced" in str(e), source  # noqa: PT017  (loops that count in Python)
        return
    each = ft.vmap(whole) if mapped else lambda xs, ys: ft.lax.map(lambda pair: whole(*pair), (xs, ys))
    xs, ys = (np.array(values, np.float32) for values in zip(*points, strict=True))
    want = [np.float32(plain(np.float32(x), np.float32(y))) for x, y in points]
    np.testing.assert_array_equal(ft.jit(each)(xs, ys), want, err_msg=source)
