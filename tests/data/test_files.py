"""Files: whole, on the disk, as they were written, and one writer at a time."""

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from deeplfm.data import files
from deeplfm.errors import InputError

CONTENT = {"a.json": b'{"one": 1}', "b": bytes(range(200))}


def test_a_file_is_on_the_disk_before_it_takes_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        done.append(kind)
        fsync(descriptor)

    def renamed(source: Path, target: Path) -> None:
        done.append(f"rename {Path(target).name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", renamed)
    files.save_json(tmp_path / "x.json", [1])
    assert done == ["file", "rename x.json", "folder"]
    done.clear()
    files.seal(tmp_path, {"one": b"1"})
    sealed = ["file", "folder", "file", "rename manifest.json", "folder", "rename one"]
    assert done == sealed
    done.clear()
    files.save_state(tmp_path / "state", {"x": torch.ones(2)}, {})
    assert done == ["file", "rename state", "folder"]


def test_every_flipped_bit_of_a_sealed_folder_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deeplfm.data.files.sealed._PAUSE", 0.0)
    files.seal(tmp_path, CONTENT, {"of": "a test"})
    for path in tmp_path.iterdir():
        whole = path.read_bytes()
        for place in range(8 * len(whole)):
            content = bytearray(whole)
            content[place // 8] ^= 1 << place % 8
            if place % 3 == 0:
                path.write_bytes(content)
                with pytest.raises(InputError, match="Copy the whole folder again"):
                    files.opened(tmp_path)
        path.write_bytes(whole)
    sealed = files.opened(tmp_path)
    assert sealed is not None
    assert sealed.about == {"of": "a test"}
    assert sealed.json("a.json") == {"one": 1}


@pytest.mark.parametrize("kind", ["swapped", "cut", "gone", "grown"])
def test_files_of_a_sealed_folder_that_are_not_theirs(kind: str, tmp_path: Path) -> None:
    files.seal(tmp_path, CONTENT)
    one, two = (tmp_path / name for name in CONTENT)
    if kind == "swapped":
        one.rename(tmp_path / "c")
        two.rename(one)
        (tmp_path / "c").rename(two)
    elif kind == "gone":
        two.unlink()
    else:
        two.write_bytes(two.read_bytes()[:-1] if kind == "cut" else two.read_bytes() + b"\0")
    with pytest.raises(InputError, match="as it was written; it is missing or was changed"):
        files.opened(tmp_path).read("b")  # type: ignore[union-attr]


def test_a_seal_that_is_cut_short_leaves_the_old_files_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CutError(Exception):
        pass

    def stopping_at(step: int) -> Callable[[Path, Path], None]:
        replace, done = os.replace, 0

        def stop(source: Path, target: Path) -> None:
            nonlocal done
            if done == step:
                raise CutError
            done += 1
            replace(source, target)

        return stop

    old, new = {"a": b"old", "b": b"b"}, {"a": b"new", "c": b"c"}
    for step in range(3):
        folder = tmp_path / str(step)
        files.seal(folder, old)
        with monkeypatch.context() as patch:
            patch.setattr("deeplfm.data.files.sealed.os.replace", stopping_at(step))
            with pytest.raises(CutError):
                files.seal(folder, new, keep=["b"])
        found = files.opened(folder)
        assert found is not None
        assert dict(found.found) == (old if step == 0 else {"b": b"b", **new})
        files.finish(folder)
        assert not files.unfinished(folder)
        assert {p.name for p in folder.iterdir()} == {files.MANIFEST, *found.found}
        files.seal(folder, {"a": b"third"})
        assert {p.name for p in folder.iterdir()} == {files.MANIFEST, "a"}


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        "1" * 5000,
        "{}",
        "[]",
        "null",
        '{"version": 1, "about": {}, "files": {"../x": "0"}}',
        '{"version": true, "about": [], "files": {}}',
        "\ufeff{}",
    ],
)
def test_crafted_manifests_are_one_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / files.MANIFEST).write_text(content)
    with pytest.raises(InputError) as told:
        files.opened(tmp_path)
    assert "\n" not in str(told.value)
    files.seal(tmp_path, CONTENT)  # it is replaced, and nothing that it names is touched
    assert files.names(tmp_path) == CONTENT.keys()


def test_a_manifest_names_no_file_elsewhere(tmp_path: Path) -> None:
    """Sealed by hand, with a checksum that holds."""
    (tmp_path / "x").write_text("precious")
    known = {"version": 1, "about": {}, "files": {"../x": files.sha256(b"other")}}
    own = files.sha256(files.json_text(known).encode())
    (tmp_path / "in").mkdir()
    files.save_json(tmp_path / "in" / files.MANIFEST, known | {"checksum": own})
    with pytest.raises(InputError, match="as it was written"):
        files.opened(tmp_path / "in")
    files.seal(tmp_path / "in", {})
    assert (tmp_path / "x").read_text() == "precious"


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_plain_file_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.seal(tmp_path, CONTENT)
    path.unlink()
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    with pytest.raises(InputError, match="must be a plain file"):
        files.opened(tmp_path)
    with pytest.raises(InputError, match="must be a plain file"):
        files.load_state(path)
    with pytest.raises(InputError, match="must be a plain file"):
        files.load_tensors(path)


def test_a_state_notices_every_change_that_matters(tmp_path: Path) -> None:
    path = tmp_path / "state"
    tensors = {"x": torch.arange(5.0), "on": torch.tensor([True]), "empty": torch.zeros(0, 2)}
    files.save_state(path, tensors, {"step": 3})
    assert files.load_state(tmp_path / "none") is None
    whole, kept = path.read_bytes(), files.load_state(path)
    assert kept is not None
    refused = 0
    for place in np.random.default_rng(0).choice(8 * len(whole), 300, replace=False).tolist():
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        try:
            found = files.load_state(path)
        except InputError as error:
            refused += "\n" not in str(error)
            continue
        assert found is not None
        assert found[1] == kept[1]
        assert all(torch.equal(found[0][name], kept[0][name]) for name in tensors)
    assert refused > 250


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with files.locked(folder, "a fit"):
        said = rf"a fit \(process {os.getpid()} on {socket.gethostname()}, since 20.*\) holds it"
        with pytest.raises(InputError, match=said), files.locked(folder, "an update"):
            pass
        assert "a fit (process" in str(files.holder(folder))
    assert not folder.exists()  # it was made for the lock alone
    folder.mkdir()
    with files.locked(folder, "a fit"):
        (folder / "kept").touch()
    assert [path.name for path in folder.iterdir()] == ["kept"]
    assert files.holder(folder) is None


KILLED = """
import os, sys
from pathlib import Path
from deeplfm.data import files
with files.locked(Path(sys.argv[1]), "a fit"):
    os._exit(9)
"""


def test_the_lock_of_a_process_that_is_gone_binds_nobody(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)])
    assert json.loads((tmp_path / files.LOCK).read_text())["action"] == "a fit"
    assert files.holder(tmp_path) is None
    with files.locked(tmp_path, "a fit"):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="flock")
def test_where_there_are_no_locks_the_process_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import fcntl

    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(fcntl, "flock", none)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    here = {"host": socket.gethostname(), "action": "a fit", "since": "now"}
    for said, free in [
        (here | {"pid": os.getpid()}, False),
        (here | {"pid": gone.pid}, True),
        (here | {"pid": gone.pid, "host": "elsewhere"}, False),
        (here | {"pid": "x"}, True),
        ([], True),
    ]:
        (tmp_path / files.LOCK).write_text(json.dumps(said))
        assert (files.holder(tmp_path) is None) == free


def test_only_one_of_many_gets_a_lock(tmp_path: Path) -> None:
    """Again and again: a lock that was removed as it was opened is none."""
    inside = threading.Semaphore(1)
    wrong, won = [], []

    def work() -> None:
        for _ in range(40):
            try:
                with files.locked(tmp_path / "x", "work"):
                    if not inside.acquire(blocking=False):
                        wrong.append(1)
                        continue
                    won.append(1)
                    inside.release()
            except InputError:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won
    assert not wrong
    shutil.rmtree(tmp_path / "x", ignore_errors=True)


def test_a_text_with_names_that_are_no_utf8_is_written(tmp_path: Path) -> None:
    files.save_text(tmp_path / "x.html", os.fsdecode(b"run \xff"))
    assert (tmp_path / "x.html").read_text() == "run \\udcff"
