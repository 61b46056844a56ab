"""Programs compile quickly here, but where digits are what is tested, or what XLA makes of an operation."""

import pytest

AS_USERS = {
    "test_accuracy", "test_elementwise", "test_fft", "test_lax", "test_linalg", "test_matrix_functions", "test_nn",
    "test_reductions", "test_special", "test_special_functions",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _compiled(request):
    if request.path.stem not in AS_USERS:
        request.getfixturevalue("quickly")
