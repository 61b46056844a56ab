"""Linear algebra lowered for GPUs; some of the forms run on CPUs too, and all on a GPU where there is one."""

import re

import numpy as np
import pytest
from support.primitive_checks import check_compiled
from support.primitive_samples import all_cases, results

import functorch_like as ft
from functorch_like import core
from functorch_like.backends import xla
from functorch_like.compiler.lower import lower
from functorch_like.core import TABLE, aval_of
from functorch_like.ir.trace_to_jaxpr import stage

CALLS = {
    "cholesky": {"cusolver_potrf_ffi"},
    "triangular_solve": {"stablehlo.triangular_solve"},
    "lu": {"cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"},
    "lu_pivots_to_permutation": {"cu_lu_pivots_to_permutation"},
    "solve": {"cusolver_getrf_ffi", "cu_lu_pivots_to_permutation", "stablehlo.triangular_solve"},
    "geqrf": {"cusolver_geqrf_ffi"},
    "geqp3": {"cuhybrid_geqp3"},
    "householder_product": {"cusolver_orgqr_ffi"},
    "ormqr": {"cusolver_orgqr_ffi"},
    "qr": {"cusolver_geqrf_ffi", "cusolver_orgqr_ffi", "cuhybrid_geqp3"},
    "svd": {"cusolver_gesvdj_ffi", "cusolver_gesvd_ffi"},
    "pinv": {"cusolver_gesvdj_ffi"},
    "eigh": {"cusolver_syevd_ffi"},
    "eig": {"cuhybrid_eig_real", "cuhybrid_eig_comp"},
    "tridiagonal": {"cusolver_sytrd_ffi"},
    "tridiagonal_solve": {"cusparse_gtsv2_ffi"},
    # On the host, by SciPy.
    "schur": {"xla_ffi_python_gpu_callback"},
    "hessenberg": {"xla_ffi_python_gpu_callback"},
}


def lowered(prim, avals, params):
    jaxpr, _ = stage(lambda *xs: results(prim, prim(*xs, **params)), avals, name=prim.name, parent=core.EVALUATE)
    return lower(jaxpr, name=prim.name, platform="gpu")


def text(name, *avals, **params):
    return xla.module_text(lowered(TABLE[name], [core.ShapedArray(*a) for a in avals], params).module)


def test_every_primitive_of_linear_algebra_is_listed():
    linear = {
        name for name, primitive in TABLE.items() if primitive.lower.__module__.endswith("primitives.linalg.makers")
    }
    with_alternatives = {"cholesky", "lu", "solve", "triangular_solve"}  # their rule is of another class
    assert linear | with_alternatives == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_each_primitive_calls_its_kernels(name):
    found = set()
    for case in all_cases():
        if case.prim.name == name:
            module = lowered(case.prim, [aval_of(x) for x in case.draw()], case.sample.params).module
            xla.verify(module)
            shown = xla.module_text(module)
            found.update(re.findall(r"custom_call @(\w+)", shown))
            found.update(re.findall(r"stablehlo\.triangular_solve", shown))
    assert found == CALLS[name]


def test_matrices_are_passed_column_by_column():
    shown = text("lu", ((2, 4, 3), "float32"))
    assert "operand_layouts = [dense<[1, 2, 0]>" in shown
    assert "result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<[1, 0]> : tensor<2xindex>" in shown


@pytest.mark.parametrize(
    ("shown", "attributes"),
    [
        (text("eigh", ((3, 3), "float64"), lower=True, compute_v=True), ("algorithm = 0 : ui8", "lower = true")),
        (text("tridiagonal", ((3, 3), "float64"), lower=False), ("lower = false",)),
        (
            text("eig", ((3, 3), "float32"), compute_left_eigenvectors=False, compute_right_eigenvectors=True),
            ('magma = "auto"', "left = false", "right = true"),
        ),
        (text("geqp3", ((3, 2), "float32")), ('magma = "auto"', "operand_index = 1")),
        (
            text("svd", ((3, 2), "float32"), full_matrices=False, compute_uv=True),
            ("cusolver_gesvdj_ffi", "full_matrices = false", "compute_uv = true"),
        ),
        (
            text("svd", ((2, 2000), "float32"), full_matrices=True, compute_uv=True),
            ("cusolver_gesvd_ffi", "transposed = false", "tensor<2000x2000xf32>, tensor<2x2xf32>"),
        ),
        (text("svd", ((2000, 2), "float32"), full_matrices=False, compute_uv=False, algorithm="jacobi"), ("gesvdj",)),
    ],
)  # fmt: skip
def test_attributes_are_those_the_kernels_take(shown, attributes):
    for attribute in attributes:
        assert attribute in shown


PORTABLE = [
    pytest.param(c, id=c.label)
    for c in all_cases()
    if c.prim.name == "triangular_solve" and all(x.size for x in c.draw())
]


@pytest.mark.parametrize("case", PORTABLE)
def test_forms_that_are_xla_s_own_run_on_cpus_too(case):
    xs = case.draw()
    program = lowered(case.prim, [aval_of(x) for x in xs], case.sample.params)
    (device,) = ft.devices("cpu")[:1]
    found = program.compile(device).execute(xs)
    check_compiled(case, [np.asarray(o) for o in found], xs)


@pytest.mark.gpu
@pytest.mark.parametrize("case", [pytest.param(c, id=c.label) for c in all_cases() if c.prim.name in CALLS])
def test_results_on_a_gpu(case):
    xs = case.draw()
    device = ft.devices("gpu")[0]
    found = results(case.prim, case.prim(*[ft.device_put(x, device) for x in xs], **case.sample.params))
    wanted = results(case.prim, case.prim(*xs, **case.sample.params))
    for got, want in zip(found, wanted, strict=True):  # vectors are unique up to a sign or phase
        np.testing.assert_allclose(np.abs(np.asarray(got)), np.abs(np.asarray(want)), rtol=1e-3, atol=1e-3)
