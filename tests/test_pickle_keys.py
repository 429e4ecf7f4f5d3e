"""Keys of pickles are counted as PyTorch's reader of plain data makes them, without opening a pickle."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import Counter, OrderedDict
from typing import Any

import pytest
import torch
from pt2wire import DeserializeError
from pt2wire.importing.pickle_keys import compound_keys_problem
from pt2wire.importing.pickles import open_pickle

_MANY = range(300)
_HONEST = {
    "tensors": [torch.ones(1) for _ in range(100)],
    "parameters": [torch.nn.Parameter(torch.ones(1)) for _ in range(100)],
    "sparse tensors": [torch.eye(3).to_sparse() for _ in range(100)],
    "a state dict": torch.nn.Sequential(*[torch.nn.Linear(1, 1) for _ in range(100)]).state_dict(),
    "texts, numbers and a pair as keys": {**{f"{n}": n for n in _MANY}, **{n: 0 for n in _MANY}, (1, 2): 0},
    "tuples as values": {n: (n, (n,)) for n in _MANY},
    "a long integer": [1 << 70],
    "sets of texts and numbers": [set(), {"a"}, {f"{n}" for n in _MANY}, set(_MANY)],
}
_HOSTILE = {
    "tuples as keys": {(n,): 0 for n in _MANY},
    "long integers as keys": {n << 70: 0 for n in range(1, 301)},
    "tuples as keys of an OrderedDict": OrderedDict({(n,): 0 for n in _MANY}),
    "tuples as keys of a Counter": Counter({(n,): 1 for n in _MANY}),
    "tuples of a set": {(n,) for n in _MANY},
}


def _pickles(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    with zipfile.ZipFile(file) as found:
        return found.read(next(name for name in found.namelist() if name.endswith("data.pkl")))


@pytest.mark.parametrize("name", _HONEST)
def test_what_pytorch_writes_of_honest_values_is_opened(name: str) -> None:
    assert compound_keys_problem(_pickles(_HONEST[name])) is None


@pytest.mark.parametrize("again", [b"h\0", b"2"], ids=["under another name", "twice on the stack"])
def test_a_list_that_grows_elsewhere_is_not_taken_for_what_it_was(again: bytes) -> None:
    """A set is made of a list, which gets its items where another reference to it lies."""
    tuples = b"".join(b"M" + n.to_bytes(2, "little") + b"\x85" for n in _MANY)
    grown = b"\x80\x02c__builtin__\nset\n]q\0" + again + b"(" + tuples + b"e0\x85R."
    assert pickle.loads(grown) == {(n,) for n in _MANY}
    assert compound_keys_problem(grown) is not None


@pytest.mark.parametrize("name", _HOSTILE)
def test_keys_that_may_share_a_hash_are_counted(name: str) -> None:
    file = io.BytesIO()
    torch.save(_HOSTILE[name], file)
    with pytest.raises(DeserializeError, match="at most 256 keys"):
        open_pickle(file.getvalue(), "inputs", allow_pickle=False)
    assert open_pickle(file.getvalue(), "inputs", allow_pickle=True) == _HOSTILE[name]
