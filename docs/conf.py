"""How Sphinx builds these pages: `sphinx-build -W --keep-going -b html docs build/docs`.

Every code cell runs while building, and an error in one fails the build. Docstrings of the package
are plain text: a hook turns each into paragraphs, lists of arguments under their heads (Args,
Shapes, Example) and literal blocks, which no markup can break.
"""

import importlib.metadata
import re
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from deeplfm.paper.baselines import registered_baselines
from deeplfm.paper.datasets import registered_data_sets

project = "deeplfm"
author = "The deeplfm developers"
project_copyright = author
release = importlib.metadata.version("deeplfm")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
exclude_patterns = ["images", "_build"]
html_theme = "furo"
html_title = "deeplfm"
html_static_path: list[str] = []
html_show_sourcelink = False
# Furo frames Python and shell alike; a reader copies what is inside.
pygments_style, pygments_dark_style = "tango", "monokai"

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_number_source_lines = False

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # shapes are in the docstrings; jaxtyping's would fill the page
autodoc_class_signature = "mixed"


def _inline(text: str) -> str:
    """One line of plain text with `names` as reStructuredText."""
    parts = re.split(r"(`[^`\n]+`)", text)
    for k, part in enumerate(parts):
        if k % 2:
            touches = re.match(r"\w", parts[k + 1])  # a literal must not touch a letter
            parts[k] = f"``{part[1:-1]}``" + ("\\ " if touches else "")
        else:
            parts[k] = re.sub(r"([*_|\\])", r"\\\1", part)
    return "".join(parts)


def _is_aligned(block: list[str]) -> bool:
    """A table of arguments, an equation: anything whose spaces mean something."""
    return any(line.startswith(" ") or re.search(r"\S {2,}\S", line) for line in block)


def _listed(block: list[str]) -> list[tuple[str, str]] | None:
    """`name:  text` pairs, whose texts may run over indented lines; None for anything else."""
    found: list[tuple[str, str]] = []
    for line in block:
        head = re.match(r"(\w[\w, ()]*): +(\S.*)$", line)
        if head and not line.startswith(" "):
            found.append((head[1], head[2]))
        elif line.startswith(" ") and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        else:
            return None
    return found


def plain_docstring(
    _app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]
) -> None:
    """Each paragraph as text, as a list of arguments, or word for word; sections have a head."""
    blocks = [block.split("\n") for block in re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))]
    made: list[str] = []
    for whole in blocks:
        block, section = whole, re.fullmatch(r"(Args|Shapes|Example):", whole[0])
        if section:  # its lines stand four deep
            made += [f"**{section[1]}**", ""]
            block = [line[4:] for line in whole[1:]]
        pairs = _listed(block)
        if section and section[1] == "Example":
            made += ["::", "", *(f"    {line}" for line in block)]
        elif pairs is not None and (section or _is_aligned(block)):
            for name, text in pairs:
                made += [f"{_inline(name)}", f"    {_inline(text)}"]
        elif _is_aligned(block):
            made += ["::", "", *(f"    {line}" for line in block)]
        else:
            made.append(_inline(" ".join(block)))
        made.append("")
    lines[:] = made


class Registered(SphinxDirective):
    """Documents what is registered: `.. registered:: baselines`, `.. registered:: data sets`."""

    required_arguments, final_argument_whitespace = 1, True

    def run(self) -> list[nodes.Node]:
        classes = [entry.cls for entry in registered_baselines().values()]
        modules = list(dict.fromkeys(e.load.__module__ for e in registered_data_sets().values()))
        lines = {
            "baselines": [f".. autoclass:: {cls.__module__}.{cls.__name__}\n" for cls in classes],
            "data sets": [f".. automodule:: {name}\n   :members:\n" for name in modules],
        }
        return self.parse_text_to_nodes("\n".join(lines[self.arguments[0]]))


def setup(app: Any) -> None:
    """Sphinx calls it."""
    app.add_directive("registered", Registered)
    app.connect("autodoc-process-docstring", plain_docstring)
