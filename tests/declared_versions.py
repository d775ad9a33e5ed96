"""The lowest and the newest versions that pyproject.toml declares, as requirements for pip.

    python tests/declared_versions.py lowest > requirements.txt

torch is the same in both: other builds may bring gigabytes of accelerator libraries.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WITH_TESTS = ("pyarrow", "beartype", "hypothesis", "pytest", "pytest-xdist")


def requirements(which: str) -> list[str]:
    """One line per package: `==` its lowest version, or what is declared of it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [one for extra in project["optional-dependencies"].values() for one in extra]
    found = []
    for declared in project["dependencies"]:
        name, least = re.match(r"([\w-]+)>=([\d.]+)", declared).groups()  # type: ignore[union-attr]
        if name == "torch":
            found.append(_pinned(name))
        else:
            found.append(f"{name}=={least}" if which == "lowest" else declared)
    return found + [one for one in extras if re.match(r"[\w-]+", one)[0] in WITH_TESTS]  # type: ignore[index]


def _pinned(name: str) -> str:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{name}=="))


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1])))
