"""Compiled kernels come with the package, where there is a C compiler (`sums/c`)."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

FOLDER = "src/deeplfm/sums/c"


class KernelHook(BuildHookInterface):
    """Adds the libraries to a wheel, which then is of one platform; or leaves them in place."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        libraries = runpy.run_path(str(Path(self.root, FOLDER, "build.py")))["build"]()
        if libraries:
            system = next(tag.platform for tag in sys_tags())
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{system}"
            build_data["artifacts"] += [f"{FOLDER}/{path.name}" for path in libraries]
