"""CHARIS through records written here: values, missing samples, damage, what is asked for."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pooch
import pytest

import deeplfm as dlfm
from deeplfm.paper.datasets.charis import charis, charis_record

module = sys.modules[charis.__module__]
SHARED = Path(__file__).parents[4] / "shared" / "data"
LENGTH = 1300
# What wfdb asks of pandas when it is imported or writes.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")


@pytest.fixture
def wfdb() -> Any:
    return pytest.importorskip("wfdb", reason="needs the extra charis")


@pytest.fixture
def samples() -> Any:
    values = np.random.default_rng(4).normal(size=(LENGTH, 3)).cumsum(0)
    values[300:310, 1] = np.nan
    return values


@pytest.fixture
def folder(tmp_path: Path, wfdb: Any, samples: Any) -> Path:
    """A folder with charis/charis6.hea and .dat, format 16."""
    write(wfdb, tmp_path / "charis", "charis6", samples)
    return tmp_path


def write(wfdb: Any, folder: Path, name: str, samples: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    wfdb.wrsamp(
        name,
        fs=50,
        units=["mmHg", "mV", "mmHg"],
        sig_name=["ABP", "ECG", "ICP"],
        p_signal=samples,
        fmt=["16"] * 3,
        write_dir=str(folder),
    )


def standardised(window: Any) -> Any:
    return (window - np.nanmean(window, 0)) / np.nanstd(window, 0)


def rounding(samples: Any) -> Any:
    """One of the 2^16 - 2 levels of a channel's range in format 16, in spreads of a window."""
    levels = (np.nanmax(samples, 0) - np.nanmin(samples, 0)) / (2**16 - 2)
    return levels / np.nanstd(samples[:1000], 0)


def test_the_first_thousand_samples(folder: Path, samples: Any) -> None:
    series = charis(path=folder)
    np.testing.assert_array_equal(charis_record("charis6", 7, folder).values, series.values)
    assert series.names == ("ABP", "ECG", "ICP")
    np.testing.assert_array_equal(series.times, np.linspace(0, 1, 1000))
    expected = standardised(samples[:1000])
    np.testing.assert_array_equal(np.isnan(series.values), np.isnan(expected))
    # Half a level in a sample, half in the mean, half in the spread times the value.
    allowed = rounding(samples) * (1 + np.nanmax(np.abs(expected), 0) / 2)
    assert (np.nanmax(np.abs(series.values - expected), 0) <= 1.01 * allowed).all()
    np.testing.assert_allclose(np.nanmean(series.values, 0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(series.values, 0), 1)
    for channel, start in enumerate((200, 400, 600)):
        gap = np.flatnonzero(series.tests["imputation"][:, channel])
        np.testing.assert_array_equal(gap, np.arange(start, start + 150))
    np.testing.assert_array_equal(
        np.flatnonzero(series.tests["extrapolation"].all(1)), np.arange(975, 1000)
    )


def test_channels_in_any_order_from_any_start(folder: Path) -> None:
    """A channel keeps its gap; the window is the one asked for, to its last possible start."""
    all_channels = charis(start=300, path=folder)
    two = charis("charis6", ("ICP", "ABP"), 300, folder)
    assert two.names == ("ICP", "ABP")
    np.testing.assert_array_equal(two.values, all_channels.values[:, [2, 0]])
    for name, mask in all_channels.tests.items():
        np.testing.assert_array_equal(two.tests[name], mask[:, [2, 0]])
    assert np.isnan(all_channels.values[:10, 1]).all()
    assert np.isfinite(all_channels.values[10:]).all()


def test_a_record_is_verified_in_chunks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of any size see every sample: also the last, which no window holds."""
    whole = charis(path=folder)
    for chunk in (99, 650, 1299, 1300, 5000):
        monkeypatch.setattr(module, "_CHUNK", chunk)
        np.testing.assert_array_equal(charis(path=folder).values, whole.values)
        data = folder / "charis/charis6.dat"
        good = data.read_bytes()
        data.write_bytes(good[:-2] + bytes([good[-2] ^ 1, good[-1]]))
        with pytest.raises(dlfm.InputError, match="got other sums"):
            charis(path=folder)
        data.write_bytes(good)


def test_damage_names_the_file(folder: Path) -> None:
    data, header = folder / "charis/charis6.dat", folder / "charis/charis6.hea"
    good, text = data.read_bytes(), header.read_text()
    data.write_bytes(good[: len(good) // 2 // 6 * 6])
    with pytest.raises(dlfm.InputError) as caught:
        charis(path=folder)
    assert str(caught.value) == (
        f"{data} must hold 1300 samples of each signal with the checksums in charis6.hea; got "
        "fewer samples. Delete it, and get it again from "
        "https://physionet.org/content/charisdb/1.0.0/."
    )
    data.write_bytes(good[:-1])
    with pytest.raises(dlfm.InputError, match="got fewer samples"):
        charis(path=folder)
    data.write_bytes(good)
    line = text.splitlines()[1].split()
    right = int(line[6])
    for wrong in (right + 1, right + 2**15):
        line[6] = str(wrong)
        header.write_text(text.replace(text.splitlines()[1], " ".join(line)))
        with pytest.raises(dlfm.InputError, match=r"charis6.dat must hold .* got other sums"):
            charis(path=folder)
    line[6] = str(right - 2**16)  # the same sum, as a header with signed sums has it
    header.write_text(text.replace(text.splitlines()[1], " ".join(line)))
    assert charis(path=folder).values.shape == (1000, 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "charis6 3 50 1300\ncharis6.dat 16\n",
        "charis6 1 50\ncharis6.dat 16 200 16 0 0 0 0 ABP\n",
        "charis6 1 50 1300\ncharis6.dat 16\n",
        "charis6 1 50 1300\nother.dat 16 200 16 0 0 0 0 ABP\n",
        "charis6/2 1 50 1300\na 650\nb 650\n",
    ],
)
def test_a_header_that_is_none(folder: Path, text: str) -> None:
    (folder / "charis/charis6.hea").write_text(text)
    with pytest.raises(dlfm.InputError, match=r"charis6.hea must be a WFDB header of signals"):
        charis(path=folder)


@pytest.mark.usefixtures("without_shape_checks")
def test_what_cannot_be_asked_for(folder: Path, wfdb: Any, samples: Any) -> None:
    for channels in (("ABP", "CVP"), (), ("ABP", "ABP"), "ABP"):
        with pytest.raises(dlfm.InputError, match="channels must be different names out of"):
            charis(channels=channels, path=folder)
    for start in (-1, 301, 0.5, True):
        with pytest.raises(dlfm.InputError, match="start must leave 1000 of the 1300 samples"):
            charis(start=start, path=folder)  # type: ignore[arg-type]
    with pytest.raises(dlfm.InputError, match="record must be a name"):
        charis("../charis6", path=folder)
    write(wfdb, folder, "short", samples[:999])
    with pytest.raises(dlfm.InputError, match="must leave 1000 of the 999 samples of short"):
        charis("short", path=folder)
    for flat in (1.0, np.nan):
        samples[:1100, 2] = flat
        write(wfdb, folder, "flat", samples)
        with pytest.raises(dlfm.InputError, match=r"channel 'ICP' must vary; .*samples 50 to 1049"):
            charis("flat", start=50, path=folder)


def test_without_wfdb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "wfdb", None)
    with pytest.raises(dlfm.InputError, match=r"pip install 'deeplfm\[charis\]'"):
        charis(path=tmp_path)


def test_a_record_is_downloaded_and_verified(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    asked: list[str] = []

    class Downloader:
        def __call__(self, address: str, file: str, _: object) -> None:
            asked.append(address)
            Path(file).write_bytes((folder / "charis" / address.rsplit("/", 1)[1]).read_bytes())

    monkeypatch.delenv("DEEPLFM_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: cache)
    monkeypatch.setattr(pooch, "HTTPDownloader", Downloader)
    np.testing.assert_array_equal(charis().values, charis(path=folder).values)
    root = "https://physionet.org/files/charisdb/1.0.0"
    assert asked == [f"{root}/charis6.hea", f"{root}/charis6.dat"]
    (cache / "charis/charis6.dat").write_bytes(b"\0" * LENGTH * 6)
    with pytest.raises(dlfm.InputError, match=f"{cache}/charis/charis6.dat must hold"):
        charis()


@pytest.mark.skipif(
    not (SHARED / "charis").exists(), reason="needs the data files beside the project"
)
def test_the_genuine_headers(wfdb: Any) -> None:
    for name, length in (("charis1", 12239851), ("charis4", 7199999), ("charis6", 8279982)):
        header = module._header(wfdb, SHARED / "charis" / f"{name}.hea")
        assert header.sig_name == ["ABP", "ECG", "ICP"]
        assert header.fmt == ["16"] * 3
        assert header.sig_len == length
    with pytest.raises(dlfm.InputError) as caught:
        charis(path=SHARED)
    assert str(caught.value) == (
        "the data file charis/charis6.hea must be on this machine, with charis6.dat beside it; "
        f"not found: {SHARED}/charis/charis6.dat. Put it there, or name the folder that holds "
        "charis/charis6.hea; it comes from https://physionet.org/content/charisdb/1.0.0/."
    )
