"""Tables on disk: the same rows, the same scaling, the same training, in bounded memory."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from deeplfm.app import cli, runs
from deeplfm.data import Dataset, dataset, fit_scaling
from deeplfm.data.stored import Stored, store
from deeplfm.errors import InputError
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.regressor.fitting import fit
from own_likelihoods import Geometric

RECIPE = dlfm.FourierDLFM(num_features=6, hidden_dim=2)
TRAINING = dlfm.Training(steps=12, num_samples=2, batch_size=20)
NAMES = ("t",), ("a", "b")


def table(rows: int = 320) -> Dataset:
    """Integers whose mean is 0 in every chunk of 64: all sums are exact, in any order."""
    t = np.arange(rows, dtype=float)[:, None]
    sign = np.where(t % 2 == 0, 1.0, -1.0)
    y = sign * np.hstack([1 + (t // 2) % 8, 3 + (t // 2) % 16])
    y[64:70] = np.nan  # pairs of + and -, in both
    y[128:134, 1] = np.nan
    return Dataset(t, y, *NAMES)


def on_disk(data: Dataset, path: Path) -> Stored:
    np.save(path, np.hstack([data.x, data.y]))
    return Stored(path, data.input_names, data.output_names)


def test_rows_come_as_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = table()
    stored = on_disk(data, tmp_path / "rows.npy")
    assert len(stored) == 320
    chosen = np.random.default_rng(0).permutation(320)[:50]
    found = stored.rows(chosen)
    np.testing.assert_array_equal(found.x, data.x[chosen])
    np.testing.assert_array_equal(found.y, data.y[chosen])
    monkeypatch.setattr("deeplfm.data.stored._CHUNK", 100)
    chunks = list(stored.chunks())
    assert [len(chunk) for chunk in chunks] == [100, 100, 100, 20]
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), data.y)
    monkeypatch.setattr("deeplfm.data.stored._THINNED", 5)
    np.testing.assert_array_equal(stored.thinned().x[:, 0], [0, 79, 159, 239, 319])
    np.save(tmp_path / "single.npy", np.hstack([data.x, data.y]).astype(np.float32))
    single = Stored(tmp_path / "single.npy", *NAMES).rows(chosen)
    np.testing.assert_array_equal(single.y, data.y[chosen])  # small integers
    assert single.y.dtype == np.float64


def test_what_is_written_in_pieces_is_read_whole(tmp_path: Path) -> None:
    data = table()
    parts = (slice(0, 64), slice(64, 70), slice(70, 320))  # one of them without any target
    chunks = (Dataset(data.x[part], data.y[part], *NAMES) for part in parts)
    assert list(store(chunks, tmp_path / "rows.npy")) == [64, 64, 314]
    found = np.load(tmp_path / "rows.npy")
    np.testing.assert_array_equal(found, np.hstack([data.x, data.y])[data.observed.any(1)])
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


@pytest.mark.parametrize("inputs", [1, 2])
def test_scaling_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inputs: int) -> None:
    """Means to n ε of the largest value, spreads to n ε times the condition of a variance."""
    rng = np.random.default_rng(0)
    n = 500
    x = rng.normal(1e3, 1.0, (n, inputs))
    y = np.column_stack([1e3 + np.linspace(0, 9, n) + rng.normal(size=n), np.full(n, 7.0)])
    y[rng.random((n, 2)) < 0.3] = np.nan
    y[:90] = np.nan  # a chunk without any
    data = Dataset(x, y, tuple("pq"[:inputs]), ("a", "b"))
    stored = on_disk(data, tmp_path / "rows.npy")
    monkeypatch.setattr("deeplfm.data.stored._CHUNK", 45)
    found, expected = stored.scaling(), fit_scaling(data)
    close = n * np.finfo(float).eps
    for name in ("input_origin", "input_scale", "target_mean", "target_std"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e3 * close)
    np.testing.assert_allclose(found.target_mean, expected.target_mean, rtol=close)
    counts = replace(data, y=np.floor(y))
    stored = on_disk(counts, tmp_path / "counts.npy")
    found, expected = stored.scaling(Geometric()), fit_scaling(counts, Geometric())
    for name, array in expected.arrays().items():
        np.testing.assert_allclose(getattr(found, name), array, rtol=1e3 * close)
    assert found.target_std.tolist() == [1.0, 1.0]
    with pytest.raises(InputError, match="must be whole numbers of 0 or more"):
        on_disk(data, tmp_path / "rows.npy").scaling(Geometric())


def test_training_is_that_of_the_same_rows_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deeplfm.data.stored._CHUNK", 64)
    monkeypatch.setattr("deeplfm.data.stored._THINNED", 100)
    monkeypatch.setattr("deeplfm.models.starts.base.ROWS", 100)
    data = table()
    whole = dataset(pd.DataFrame(data.x, columns=["t"]), pd.DataFrame(data.y, columns=["a", "b"]))
    stored = on_disk(whole, tmp_path / "rows.npy")  # without the rows that have no target
    assert len(stored) == 314
    memory, disk = (fit(source, RECIPE, TRAINING, seed=2) for source in (whole, stored))
    np.testing.assert_array_equal(memory.histories[0]["loss"], disk.histories[0]["loss"])
    np.testing.assert_array_equal(memory.predictive([5.0]).mean, disk.predictive([5.0]).mean)
    assert disk.data is not None
    assert len(disk.data) == 100
    large = fit(stored, RECIPE, dlfm.Training(steps=3, num_samples=2, batch_size=1000))
    full = fit(whole, RECIPE, dlfm.Training(steps=3, num_samples=2))
    np.testing.assert_array_equal(large.histories[0]["loss"], full.histories[0]["loss"])


def invoke(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["deeplfm", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


OPTIONS = ["--model", "fourier", "--steps", "8", "--samples", "1"]
OPTIONS += ["--hidden-dim", "2", "--batch-size", "30"]


def frame() -> pd.DataFrame:
    data = table()
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(data.x[:, 0], unit="s")
    return pd.DataFrame({"t": days, "a": data.y[:, 0], "b": data.y[:, 1]})


def test_a_large_file_makes_the_run_of_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dates included; interrupted at its end, it goes on from the rows that are there."""
    path, one, two = tmp_path / "data.parquet", tmp_path / "one", tmp_path / "two"
    frame().to_parquet(path, row_group_size=50)
    assert invoke(monkeypatch, "fit", path, "--out", one, *OPTIONS) == 0
    monkeypatch.setattr(runs, "LARGE", 10)
    monkeypatch.setattr("deeplfm.data.stored._CHUNK", 2**10)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DeepLFMRegressor, "save_beside", interrupted)
        assert invoke(monkeypatch, "fit", path, "--out", two, *OPTIONS) == 1
    assert (two / "checkpoints" / "rows" / "rows.npy").exists()
    assert "314 rows are read from disk" in capsys.readouterr().out
    monkeypatch.setattr(runs, "store", None)  # nothing is converted again
    assert invoke(monkeypatch, "fit", path, "--out", two, *OPTIONS, "--resume") == 0
    assert sorted(file.name for file in two.iterdir()) == [
        "data.safetensors", "manifest.json", "model.json", "model.safetensors", "run.json"
    ]  # fmt: skip
    first, second = dlfm.load(one), dlfm.load(two)
    np.testing.assert_array_equal(first.history_["loss"], second.history_["loss"])
    at = pd.DataFrame({"t": [3.0, 400.0]})
    # One has a check, which widens a mixture about its mean: rounding may move that.
    np.testing.assert_allclose(first.predict(at), second.predict(at), rtol=1e-12)
    assert (one / "run.json").read_text() == (two / "run.json").read_text()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("a", "x", "got 'x' in row 70001"),
        ("a", np.inf, "must be finite or NaN, and observed somewhere"),
        ("t", np.nan, "the first in row 70001"),
    ],
)
def test_what_is_wrong_in_a_large_file_is_found_and_nothing_is_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    column: str,
    value: str | float,
    message: str,
) -> None:
    rows = 70_010  # more than a chunk
    wrong = pd.DataFrame({"t": np.arange(rows, dtype=float), "a": 1.0})
    if isinstance(value, str):
        wrong[column] = "1"
    wrong.loc[70_000, column] = value
    path, out = tmp_path / "data.parquet", tmp_path / "run"
    wrong.to_parquet(path)
    monkeypatch.setattr(runs, "LARGE", 10)
    assert invoke(monkeypatch, "fit", path, "--out", out, *OPTIONS) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


MEASURE = """
import sys, torch
from pathlib import Path
torch.set_num_threads(1)
import deeplfm as dlfm
from deeplfm.app import runs, sources
runs.LARGE = 10
model = dlfm.DeepLFMRegressor(
    dlfm.FourierDLFM(num_features=5, hidden_dim=1, weight_init="prior", frequency_init="prior"),
    dlfm.Training(steps=60, num_samples=1, batch_size=200, checkpoint_every=100))
runs.fit_run(sources.Source(Path(sys.argv[1]), [], []), model, Path(sys.argv[2]))
lines = Path("/proc/self/status").read_text().splitlines()
print("peak", next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Ten times the rows, 58 MB more of numbers: less than a fifth of that in memory."""
    rng = np.random.default_rng(0)
    peaks = []
    for rows in (200_000, 2_000_000):
        path = tmp_path / f"{rows}.parquet"
        numbers = rng.normal(size=(rows, 3))
        columns = {"t": np.arange(rows, dtype=float), "a": numbers[:, 0], "b": numbers[:, 1]}
        pd.DataFrame(columns | {"c": numbers[:, 2]}).to_parquet(path, row_group_size=50_000)
        command = [sys.executable, "-c", MEASURE, str(path), str(tmp_path / f"run_{rows}")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert f"{rows:,} rows are read from disk" in done.stdout
        peaks.append(int(done.stdout.split("peak ")[1]) / 1024)
    assert peaks[1] - peaks[0] < 0.2 * 4 * 8 * 1.8, peaks


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_input(tmp_path: Path) -> None:
    data = table()
    stored = on_disk(data, tmp_path / "rows.npy")
    with pytest.raises(dlfm.InputError, match="must have a column for each of 1 inputs and 1"):
        Stored(tmp_path / "rows.npy", ["t"], ["a"])
    with pytest.raises(dlfm.InputError, match=r"must be an \.npy file"):
        Stored(tmp_path / "none.npy", *NAMES)
    content = (tmp_path / "rows.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(content[:-8])
    with pytest.raises(dlfm.InputError, match="must hold the 320 rows that it says"):
        Stored(tmp_path / "cut.npy", *NAMES)
    for header in (b"(" * 118, b"{'shape': ['x']}", b"\n", b"1" * 118):
        (tmp_path / "cut.npy").write_bytes(content[:10] + header.ljust(118) + content[128:])
        with pytest.raises(dlfm.InputError, match=r"must be an \.npy file") as told:
            Stored(tmp_path / "cut.npy", *NAMES)
        assert "\n" not in str(told.value)
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(dlfm.InputError, match="must be a plain file"):
        Stored(tmp_path / "pipe.npy", *NAMES)
    np.save(tmp_path / "flat.npy", np.arange(5))
    with pytest.raises(dlfm.InputError, match=r"must hold floats \[N, P \+ D\], row by row"):
        Stored(tmp_path / "flat.npy", *NAMES)
    with pytest.raises(dlfm.InputError, match="must have a batch_size, and held_out 0"):
        fit(stored, RECIPE, dlfm.Training(steps=1))
    broken = Dataset(0 * data.x, data.y, *NAMES)
    with pytest.raises(dlfm.InputError, match="must differ from row to row"):
        on_disk(broken, tmp_path / "equal.npy").scaling()
    broken = Dataset(np.where(data.x == 3, np.nan, data.x), data.y, *NAMES)
    with pytest.raises(dlfm.InputError, match=r"inputs in .* must be finite"):
        on_disk(broken, tmp_path / "nan.npy").scaling()
    broken = Dataset(data.x, np.where(data.y > 0, np.nan, np.nan), *NAMES)
    with pytest.raises(dlfm.InputError, match="observed somewhere"):
        on_disk(broken, tmp_path / "gaps.npy").scaling()
