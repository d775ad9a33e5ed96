"""Registries: files of a room are found, names are unique, mistakes are named in a sentence."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm import registry as saved_classes
from deeplfm.data import Series
from deeplfm.paper.baselines import baseline, load, registered_baselines, registry
from deeplfm.paper.baselines.exact_gp import ExactGP, PerOutputGP
from deeplfm.paper.datasets import Folder, data_set, registered_data_sets
from deeplfm.paper.datasets import registry as data_set_registry
from deeplfm.paper.experiments import Cell, Sweep, cells, choose, tables
from deeplfm.paper.experiments.models import make, models, models_on
from deeplfm.paper.registration import Registry


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    for module in (registry, data_set_registry):
        entries = module._REGISTRY.entries()
        monkeypatch.setattr(module._REGISTRY, "_entries", entries)
        monkeypatch.setattr(module._REGISTRY, "_places", dict(module._REGISTRY._places))
    monkeypatch.setattr(saved_classes, "_CLASSES", dict(saved_classes._CLASSES))


def one_kernel(name: str = "OneKernel") -> Any:
    """A new class of baseline with the code of ExactGP."""
    members = {key: ExactGP.__dict__[key] for key in ("__init__", "_kernel", "_starts")}
    return type(name, (PerOutputGP,), members | {"__module__": __name__, "__qualname__": name})


def test_a_new_file_of_a_room_needs_no_other_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "rooms_of_a_test"
    room.mkdir()
    (room / "__init__.py").write_text(
        "from deeplfm.paper.registration import Registry\n"
        "ROOM = Registry('rooms_of_a_test', 'chair')\n"
    )
    for name in ("first", "second"):
        (room / f"{name}.py").write_text(
            "from rooms_of_a_test import ROOM\n"
            "def sit(): ...\n"
            f"ROOM.add('{name}', '{name} chair', sit)\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    from rooms_of_a_test import ROOM  # type: ignore[import-not-found]

    assert ROOM.entries_so_far() == {}
    assert ROOM.entries() == {"first": "first chair", "second": "second chair"}
    for module in [name for name in sys.modules if name.startswith("rooms_of_a_test")]:
        del sys.modules[module]


def test_a_name_is_taken_once_but_a_cell_of_a_notebook_runs_twice() -> None:
    entries: Registry[str] = Registry("deeplfm.paper.datasets", "chair")
    entries.add("stool", "old", one_kernel)
    entries.add("stool", "new", one_kernel)
    assert entries.entries_so_far() == {"stool": "new"}
    with pytest.raises(dlfm.InputError) as caught:
        entries.add("stool", "other", as_it_was)
    assert str(caught.value) == (
        "the name of a chair must be new; got 'stool', which is the name of "
        "test_registration.one_kernel. Choose another name."
    )


def test_every_data_set_has_loadable_records_and_kinds_that_models_know() -> None:
    asked = {place for model in models().values() for place in model.on}
    for name, entry in registered_data_sets().items():
        if entry.load.__module__.startswith("deeplfm."):
            assert {name, *entry.kinds} & asked, name
            assert len(set(entry.records)) == len(entry.records)


def test_saving_and_loading_know_registered_classes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = np.linspace(0, 1, 20)
    model = one_kernel()(steps=1).fit(t, np.sin(t))
    with pytest.raises(dlfm.InputError, match=r"registered classes.*got test_registration.OneKern"):
        model.save(tmp_path)
    assert not list(tmp_path.iterdir())
    baseline("one-kernel")(type(model))
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict(t), model.predict(t))
    del saved_classes._CLASSES["OneKernel"]
    with pytest.raises(dlfm.InputError, match=r"'OneKernel' is not among .*'ExactGP'.* import the"):
        load(tmp_path)
    monkeypatch.setitem(saved_classes._CLASSES, "OneKernel", dlfm.FirstOrder)
    with pytest.raises(dlfm.InputError, match="must hold a baseline; got the class FirstOrder"):
        load(tmp_path)


def test_classes_of_one_name_would_be_mixed_up_in_folders() -> None:
    with pytest.raises(dlfm.InputError, match=r"different names; got test_registration.ExactGP"):
        baseline("my-gp")(one_kernel("ExactGP"))
    assert "my-gp" not in registered_baselines()


def test_entries_come_in_the_order_of_files_whichever_was_imported_first() -> None:
    own = Registry[str]("deeplfm.paper.datasets", "data set")

    def registered(module: str) -> Callable[[], None]:
        def one() -> None:
            raise NotImplementedError

        one.__module__ = module
        one.__qualname__ = "one"
        return one

    own.add("mine", "of mine", registered("of.mine"))
    for name in ("uci", "toy", "cardiac"):
        own.add(name, f"of {name}", registered(f"deeplfm.paper.datasets.{name}"))
    assert list(own.entries()) == ["cardiac", "toy", "uci", "mine"]


def test_a_baseline_cannot_take_the_name_of_our_models() -> None:
    baseline("dlfm-rff")(one_kernel())
    with pytest.raises(dlfm.InputError, match=r"that of a model of ours; got \['dlfm-rff'\]"):
        models()


def test_a_baseline_on_unknown_data_is_named() -> None:
    baseline("one-kernel", on=("toy", "sereis"))(one_kernel())
    with pytest.raises(dlfm.InputError, match=r"'one-kernel' must be run on .*got \['sereis'\]"):
        cells("cardiac")


@pytest.mark.usefixtures("without_shape_checks")
def test_one_name_is_a_tuple_too() -> None:
    message = r"must be a tuple of names; got 'toy'. Pass \('toy',\)"
    for arguments in ({"on": "toy"}, {"tasks": "toy"}):
        with pytest.raises(dlfm.InputError, match=message):
            baseline("one-kernel", **arguments)  # type: ignore[arg-type]
    for arguments in ({"records": "toy"}, {"kinds": "toy"}, {"tasks": "toy"}):
        with pytest.raises(dlfm.InputError, match=message):
            data_set("chairs", **arguments)  # type: ignore[arg-type]


def test_models_are_chosen_by_name_by_kind_and_by_task() -> None:
    @data_set("patients", kinds=("series", "grid"), records=("a", "b"), seeds=2)
    def patients(record: str, seed: int, path: Folder) -> Series:
        raise NotImplementedError

    baseline("one-kernel", "one", on=("patients",), tasks=("imputation",))(one_kernel())
    entry = registered_data_sets()["patients"]
    chosen = models_on(entry)
    assert {"one-kernel", "gp", "ar-ridge", "dlfm-rff", "lfm-rff"} <= set(chosen)
    assert not {"trees", "svgp", "dlfm-rff-mixture-12", "dlfm-vip-paper"} & set(chosen)
    runs = [cell for cell in cells("patients") if cell.model == "one-kernel"]
    assert [cell.name for cell in runs] == [
        f"one-kernel_{record}_imputation_{seed}" for record in "ab" for seed in range(2)
    ]
    assert all(cell.data_set is entry for cell in runs)
    assert "one-kernel" not in {cell.model for cell in cells("cardiac")}
    assert type(make("one-kernel", steps=7)).__name__ == "OneKernel"


def test_data_that_are_no_grid_have_no_models_of_grids() -> None:
    assert not {"ar-ridge", "lag-ridge"} & {cell.model for cell in cells("uneven")}
    tasks = {cell.model: cell.tasks for cell in cells("physio") if cell.model.endswith("ridge")}
    assert tasks == {"lag-ridge": ("imputation",), "ar-ridge": ("extrapolation",)}


def test_a_class_that_no_file_holds_stays_in_one_process(tmp_path: Path) -> None:
    baseline("one-kernel", on=("toy",), smoke={"steps": 1})(one_kernel())
    chosen = choose("toy", ["one-kernel"], ["figure"], ["0"])
    with pytest.raises(dlfm.InputError, match="OneKernel must be defined at the top of a file"):
        Sweep(tmp_path, jobs=2, short=True).run(chosen, lambda _: None)
    assert Sweep(tmp_path, jobs=1, short=True).run(chosen, lambda _: None) == {}


def test_a_model_of_one_task_leaves_cells_of_the_other_empty(tmp_path: Path) -> None:
    register = baseline(
        "one-kernel", on=("toy", "table"), tasks=("imputation",), smoke={"steps": 1}
    )
    register(one_kernel())
    chosen = choose("toy", ["one-kernel"], ["figure"], ["0"])
    assert [cell.tasks for cell in chosen] == [("imputation",)]
    Sweep(tmp_path, short=True).run(chosen, lambda _: None)
    (table,) = tables(tmp_path, "toy")
    ((label, seeds, *scores),) = table.rows
    assert (label, seeds) == ("one-kernel", "1")
    assert all(scores[:3])
    assert scores[3:] == ["", "", ""]
    assert "one-kernel" not in {cell.model for cell in cells("uci")}  # tables have no such task


def test_a_cell_names_the_data_set_it_needs() -> None:
    cell = Cell("chairs", "gp", "stool", ("imputation",), 0, ExactGP())
    with pytest.raises(dlfm.InputError, match=r"must be one of .*'toy'.*; got 'chairs'"):
        _ = cell.data_set
    assert replace(cell, source="toy").data_set is registered_data_sets()["toy"]
