"""Plugin for pytest: tests that need a GPU, tests that leave no tracers behind, costs of a test, tests for JAX.

It lies outside the package, so that pytest starts without importing the package; tests that use it import it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("functorch_like")
    text = "fail every test that leaves traced values alive, as if marked check_leaks"
    group.addoption("--ft-check-leaks", action="store_true", help=text)
    text = "run tests written for JAX on functorch_like: `import jax` gives it under JAX's names"
    group.addoption("--as-jax", action="store_true", help=text)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Put the alias in place before anything imports JAX."""
    if early_config.known_args_namespace.as_jax:
        if "jax" in sys.modules and "functorch_like" not in sys.modules:
            raise pytest.UsageError(
                "--as-jax comes too late: another plugin of pytest has imported jax. Run the tests by "
                "`python -m functorch_like.as_jax -m pytest`, which needs no option"
            )
        from functorch_like import jax_alias

        jax_alias.install()


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, as --strict-markers requires."""
    config.addinivalue_line("markers", "gpu: needs a GPU that functorch_like can use; skipped where there is none")
    config.addinivalue_line("markers", "check_leaks: fails if traced values outlive the test")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs a GPU where there is none."""
    if item.get_closest_marker("gpu") is None:
        return
    import functorch_like as ft

    try:
        ft.devices("gpu")
    except ft.FtError as e:
        pytest.skip(f"needs a GPU: {e.args[0]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Check for leaks after a test that passed; a failed one is reported as it is."""
    if not (item.config.getoption("--ft-check-leaks") or item.get_closest_marker("check_leaks")):
        return (yield)
    from functorch_like.testing import check_leaks

    with check_leaks():
        return (yield)


@pytest.fixture
def ft_counts() -> Any:
    """Counts of what the test has compiled, traced and moved so far: `.count` and, by name, `.each`."""
    from functorch_like.testing import Counted

    return Counted()
