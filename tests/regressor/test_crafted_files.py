"""Saved models that say something else than was written: one sentence, or no effect."""

import copy
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.data import files

FORMATS = Path(__file__).parent / "formats"
OTHERS: list[Any] = [None, "x", -1, 1e400, [], {}, [[]], {"type": "Training"}, True]
LONG = ("1" * 5000, "[" * 50_000, '{"a":' * 50_000)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of today's format: a state-space model of two outputs."""
    t = np.linspace(0, 9, 30)
    recipe = dlfm.MarkovDLFM(modes=2, num_layers=1)
    model = dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=1), progress=False, check=False)
    folder = tmp_path_factory.mktemp("saved") / "model"
    model.fit(t, np.stack([np.sin(t), np.cos(t)], axis=1)).save(folder)
    return folder


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something is said, however deep."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    if isinstance(value, list):
        items = list(enumerate(value))[:1]
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(settings: dict[str, Any], place: tuple[Any, ...], other: Any) -> dict[str, Any]:
    found = copy.deepcopy(settings)
    inner: Any = found
    for key in place[:-1]:
        inner = inner[key]
    if other is dict:
        del inner[place[-1]]
    else:
        inner[place[-1]] = other
    return found


def put(folder: Path, text: str) -> None:
    """As somebody would who wants the checksums to hold."""
    if (folder / files.MANIFEST).exists():
        files.seal(folder, {"model.json": text.encode()}, keep=files.names(folder))
    else:
        (folder / "model.json").write_text(text)


def check(folder: Path) -> bool:
    """Whether it was refused, in a sentence."""
    try:
        dlfm.load(folder)
    except dlfm.InputError as error:
        said = str(error)
    else:
        return False
    assert "\n" not in said
    assert said.endswith(".")
    return True


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("version", ["1", "today"])
def test_settings_of_anybody(
    version: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every word of the settings as something else, or left out; the checksums hold."""
    monkeypatch.setattr("deeplfm.data.files.writing.os.fsync", lambda _: None)  # it is quicker so
    source = saved if version == "today" else FORMATS / version
    folder = shutil.copytree(source, tmp_path / "model")
    settings = json.loads((folder / "model.json").read_text())
    rng = np.random.default_rng(0)
    refused = 0
    found = list(places(settings))
    for place in found:
        for other in (dict, OTHERS[rng.integers(len(OTHERS))]):
            put(folder, files.json_text(changed(settings, place, other)))
            refused += check(folder)
    assert refused > 0.5 * len(found)
    for text in ("", "null", "[]", '"x"', "{}", "\0", *LONG):
        put(folder, text)
        assert check(folder)
    for key in settings:
        for text in LONG:
            put(folder, files.json_text(settings | {key: "HERE"}).replace('"HERE"', text))
            assert check(folder)


@pytest.mark.parametrize("version", ["2", "today"])
def test_a_format_cannot_be_lowered(version: str, saved: Path, tmp_path: Path) -> None:
    """Whatever checksum the older format does without."""
    source = saved if version == "today" else FORMATS / version
    folder = shutil.copytree(source, tmp_path / "model")
    text = (folder / "model.json").read_text()
    number = json.loads(text)["format"]
    for lower in range(1, number):
        for manifest in (True, False):
            if not manifest:
                (folder / files.MANIFEST).unlink(missing_ok=True)
            put(folder, text.replace(f'"format": {number}', f'"format": {lower}'))
            assert check(folder)
    if version == "2":
        return
    shutil.copytree(source, folder, dirs_exist_ok=True)
    (folder / files.MANIFEST).unlink()
    assert check(folder)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors", files.MANIFEST])
@pytest.mark.parametrize("kind", ["pipe", "folder", "empty", "of another model"])
def test_files_that_are_something_else(kind: str, name: str, saved: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(saved, tmp_path / "model")
    path = folder / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "empty":
        path.touch()
    else:
        other = tmp_path / "other"
        dlfm.load(saved).set_params(seed=1).save(other)
        model = dlfm.load(saved)
        model.update([9.5], [[0.0, 1.0]]).save(other)
        path.write_bytes((other / name).read_bytes())
        if path.read_bytes() == (saved / name).read_bytes():
            return
    assert check(folder)
