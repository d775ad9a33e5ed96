"""Shapes in signatures are checked at run time, in tests only; examples of hypothesis repeat."""

from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Before the first import of the package: the hook rewrites its modules as they load.
install_import_hook("deeplfm", "beartype.beartype")

settings.register_profile(
    "deeplfm",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("deeplfm")
