"""Whatever is typed: no traceback, nothing accepted that is wrong, nothing left behind.

A share of the command lines here; all of them with `--large`.
"""

import warnings
from pathlib import Path

import pytest

from deeplfm.app import cli
from torture.command_lines import command_lines
from torture.lines import Line

LINES = command_lines()
assert len({line.name for line in LINES}) == len(LINES)


def outcome(
    line: Line, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, list[str]]:
    """The exit code, what was said on stderr, and the files that are there then."""
    monkeypatch.chdir(folder)
    for name, content in line.files.items():
        (folder / name).write_bytes(content)
    monkeypatch.setattr("sys.argv", ["deeplfm", *line.arguments])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            cli.main()
            code = 0
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    found = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*"))]
    return code, capsys.readouterr().err, [name for name in found if name not in line.files]


@pytest.mark.usefixtures("without_shape_checks")
def test_command_lines(
    line: Line,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, said, left = outcome(line, tmp_path, monkeypatch, capsys)
    assert "Traceback" not in said
    if line.outcome == "done":
        assert code == 0, said
        assert "run/model.json" in left
        return
    assert code == 2, said
    assert left == []
    if "Usage:" not in said:  # of an option that is none, or has no number
        assert all(one.startswith("deeplfm: ") for one in said.splitlines())
        assert said.count("\n") <= 2  # of the data, and why they are refused
