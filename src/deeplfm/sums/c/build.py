"""Builds the kernels beside their sources: with the package, or `python -m` this module.

Without a C compiler the package is complete all the same: sums then have torch's forms.
On x86 there is one library for each kind of processor, chosen at run time. Nothing is imported here
but the standard library, since the package is not installed yet.
"""

import os
import platform
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Sums may be reordered, but NaN and infinity stay what they are.
FLAGS = (
    *("-std=c11", "-O3", "-fPIC", "-shared", "-fopenmp-simd", "-ffp-contract=fast"),
    *("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math"),
)
X86 = {
    "x86-64-v4": ("-march=x86-64-v4", "-mprefer-vector-width=512"),
    "x86-64-v3": ("-march=x86-64-v3",),
}


def build(folder: Path = HERE) -> list[Path]:
    """The libraries that could be built, each written whole or not at all."""
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if compiler is None or sys.platform == "win32":
        print("no C compiler: deeplfm is built without compiled kernels", file=sys.stderr)
        return []
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    kinds: dict[str, tuple[str, ...]] = X86 if x86 else {"any": ()}
    return [path for kind in kinds if (path := _one(compiler, kind, kinds[kind], folder))]


def _one(compiler: str, kind: str, own: tuple[str, ...], folder: Path) -> Path | None:
    target = folder / f"kernels-{kind}.so"
    sources = sorted(str(path) for path in HERE.glob("*.c"))
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / target.name
        Path(scratch, "constants.h").write_text(header(), encoding="ascii")
        flags = (*FLAGS, *own, f"-I{scratch}")
        command = [*compiler.split(), *flags, "-o", str(made), *sources, "-lm", "-pthread"]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            print(f"kernels for {kind} were not built: {error}", file=sys.stderr)
            return None
        if done.returncode != 0:
            reason = (done.stderr.strip() or "no message").splitlines()[0]
            print(f"kernels for {kind} were not built: {reason}", file=sys.stderr)
            return None
        made.replace(target)
    return target


def header() -> str:
    """`constants.h`: numbers, and a function for each fit in float32 by Horner's rule."""
    known = runpy.run_path(str(HERE.parent / "constants.py"))
    lines = [
        "#include <math.h>",
        "#define INLINE static inline __attribute__((always_inline))",
        f"#define LOOKUP_NODES {known['LOOKUP_NODES']}",
    ]
    for name in ("SINE", "COSINE", "RISE", "MOMENT_0", "MOMENT_1"):
        *lower, highest = known[f"{name}_32"]
        lines.append(f"INLINE float fit_{name.lower()}(float x) {{")
        lines.append(f"    float p = {highest!r}f;")
        lines += [f"    p = fmaf(p, x, {value!r}f);" for value in reversed(lower)]
        lines.append("    return p;\n}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(*build(), sep="\n")
