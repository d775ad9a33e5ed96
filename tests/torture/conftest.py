"""How much of an attack is run: a small part, or all with `--large`."""

from typing import Any

_EVERY = 12  # of the command lines, without --large


def pytest_generate_tests(metafunc: Any) -> None:
    if "line" in metafunc.fixturenames:
        lines = metafunc.module.LINES
        chosen = lines if metafunc.config.getoption("--large") else lines[::_EVERY]
        metafunc.parametrize("line", chosen, ids=[line.name for line in chosen])
    if "large" in metafunc.fixturenames:
        metafunc.parametrize("large", [metafunc.config.getoption("--large")], ids=["size"])
