"""Shapes in signatures are checked at run time, in tests only; examples of hypothesis repeat."""

import os
from collections.abc import Iterator

import jaxtyping
import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Before the first import of the package: the hook rewrites its modules as they load.
install_import_hook("deeplfm", "typechecking.checked")

# The workers of pytest share the cores already; what they start shares them too.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"

settings.register_profile(
    "deeplfm",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("deeplfm")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--large", action="store_true", help="All of the attacks of tests/torture.")


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """As users run it: wrong shapes must meet our own errors, not the checker of the tests."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
