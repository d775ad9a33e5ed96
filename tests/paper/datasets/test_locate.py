"""The places of data files in their order, downloads that come whole or not at all, the errors."""

import sys
from collections.abc import Callable
from pathlib import Path

import pooch
import pytest
import requests

import deeplfm as dlfm
from deeplfm.paper.datasets.locate import Source, locate

SOURCE = Source("https://data.test/page", "https://data.test/files")
Get = Callable[[str, str], None]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """$DEEPLFM_DATA and the cache, both empty; without a network."""
    named, cache = tmp_path / "named", tmp_path / "cache"
    monkeypatch.setenv("DEEPLFM_DATA", str(named))
    monkeypatch.setattr(pooch, "os_cache", lambda project: cache if project == "deeplfm" else None)
    serve(monkeypatch, refuse)
    return named, cache


def refuse(address: str, file: str) -> None:
    raise requests.exceptions.ConnectionError("a long story of hosts\nand retries")


def serve(monkeypatch: pytest.MonkeyPatch, get: Get) -> list[str]:
    """Downloads answered by `get`; the addresses asked for."""
    asked: list[str] = []

    class Downloader:
        def __call__(self, address: str, file: str, _: object) -> None:
            asked.append(address)
            get(address, file)

    monkeypatch.setattr(pooch, "HTTPDownloader", Downloader)
    return asked


def put(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("here")
    return file


def write_address(address: str, file: str) -> None:
    Path(file).write_text(address)


def test_the_order_of_places(places: tuple[Path, Path], tmp_path: Path) -> None:
    named, cache = places
    in_cache = put(cache / "a/b.txt")
    assert locate("a/b.txt") == in_cache
    flat = put(named / "b.txt")
    assert locate("a/b.txt") == flat
    nested = put(named / "a/b.txt")
    assert locate("a/b.txt") == nested
    explicit = put(tmp_path / "explicit/b.txt")
    assert locate("a/b.txt", tmp_path / "explicit") == explicit
    with pytest.raises(dlfm.InputError, match=r"name the folder that holds a/b.txt"):
        locate("a/b.txt", tmp_path / "elsewhere")  # a path that was given is the only place


def test_files_that_belong_together_lie_in_one_folder(places: tuple[Path, Path]) -> None:
    named, cache = places
    put(named / "a/r.hea")
    put(cache / "a/r.hea")
    whole = put(cache / "a/r.dat")
    assert locate("a/r.hea", beside=("r.dat",)) == whole.with_name("r.hea")


def test_a_download_goes_to_the_cache_once(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, cache = places
    asked = serve(monkeypatch, write_address)
    found = locate("a/r.hea", beside=("r.dat",), source=SOURCE)
    assert found == cache / "a/r.hea"
    assert asked == ["https://data.test/files/r.hea", "https://data.test/files/r.dat"]
    assert (cache / "a/r.dat").read_text() == asked[1]
    locate("a/r.hea", beside=("r.dat",), source=SOURCE)
    assert len(asked) == 2
    (cache / "a/r.dat").unlink()
    locate("a/r.hea", beside=("r.dat",), source=SOURCE)
    assert asked[2:] == ["https://data.test/files/r.dat"]  # what is there is kept


def test_a_download_that_breaks_off_leaves_nothing(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    named, cache = places

    def break_off(address: str, file: str) -> None:
        Path(file).write_text("half")
        raise requests.exceptions.ChunkedEncodingError("connection broken")

    serve(monkeypatch, break_off)
    with pytest.raises(dlfm.InputError) as caught:
        locate("a/r.hea", source=SOURCE)
    assert str(caught.value) == (
        f"the data file a/r.hea must be on this machine; not found: {named}/a/r.hea or "
        f"{cache}/a/r.hea, and the download of https://data.test/files/r.hea failed "
        "(ChunkedEncodingError). Put it there, or set DEEPLFM_DATA to the folder that holds "
        "a/r.hea; it comes from https://data.test/page."
    )
    assert not list(cache.rglob("*.*"))


def test_a_full_disk_is_named(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(address: str, file: str) -> None:
        raise OSError(28, "No space left on device")

    serve(monkeypatch, full)
    with pytest.raises(dlfm.InputError, match=r"failed \(No space left on device\)"):
        locate("a/r.hea", source=SOURCE)


def test_without_pooch_nothing_is_downloaded(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    named, _ = places
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(dlfm.InputError, match=f"not found: {named}/a/r.hea. Put it there"):
        locate("a/r.hea", source=SOURCE)
    assert locate("a/r.hea", put(named / "r.hea").parent).name == "r.hea"
    monkeypatch.delenv("DEEPLFM_DATA")
    with pytest.raises(
        dlfm.InputError, match=r"no folder was named. Set DEEPLFM_DATA to the folder"
    ):
        locate("a/r.hea", source=SOURCE)
