"""FILES: written whole or not at all, read only as they were written, by one command at a time.

    with files.locked(folder, "a fit"):                one at a time, or a sentence that says who
        files.seal(folder, {"a.json": …, "b": …})      all of them, or what there was before
    files.opened(folder).tensors("b")                  what its manifest says, or a sentence
    files.save_state(path, tensors, {"step": 3})       one file with a checksum of its own

Tensors are safetensors, all else is JSON; nothing is pickled. Knows no model.
"""

from deeplfm.data.files.locks import LOCK, holder, locked
from deeplfm.data.files.reading import (
    checksum,
    contents,
    load_tensors,
    parsed,
    plain_file,
    sha256,
    tensors_in,
    understood,
)
from deeplfm.data.files.sealed import (
    MANIFEST,
    Sealed,
    adopt,
    adopted,
    finish,
    names,
    opened,
    seal,
    unfinished,
)
from deeplfm.data.files.states import load_state, save_state
from deeplfm.data.files.writing import (
    json_text,
    plain,
    save_json,
    save_tensors,
    save_text,
    tensor_bytes,
    whole,
    write_whole,
)

__all__ = [
    "LOCK",
    "MANIFEST",
    "Sealed",
    "adopt",
    "adopted",
    "checksum",
    "contents",
    "finish",
    "holder",
    "json_text",
    "load_state",
    "load_tensors",
    "locked",
    "names",
    "opened",
    "parsed",
    "plain",
    "plain_file",
    "save_json",
    "save_state",
    "save_tensors",
    "save_text",
    "seal",
    "sha256",
    "tensor_bytes",
    "tensors_in",
    "understood",
    "unfinished",
    "whole",
    "write_whole",
]
