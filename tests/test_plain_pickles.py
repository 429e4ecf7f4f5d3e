"""Pickles are plain data that costs no more than its bytes, as is found without opening them."""

from __future__ import annotations

import codecs
import io
import pickle
import zipfile
from collections import Counter, OrderedDict
from typing import Any

import pytest
import torch
from pt2wire import DeserializeError, UnsafeArtifactError
from pt2wire.importing.pickles import open_pickle
from pt2wire.importing.plain_pickles import plain_data_problem
from torch._dynamo.decorators import _DimRange
from torch.nested._internal.nested_tensor import NestedTensor

_MANY = range(300)


def _with_attributes(tensor: torch.Tensor, **attributes: Any) -> torch.Tensor:
    for name, value in attributes.items():
        setattr(tensor, name, value)
    return tensor


_HONEST = {
    "tensors": [torch.ones(1) for _ in range(100)],
    "parameters": [torch.nn.Parameter(torch.ones(1)) for _ in range(100)],
    "sparse tensors": [torch.eye(3).to_sparse() for _ in range(100)],
    "a state dict": torch.nn.Sequential(*[torch.nn.Linear(1, 1) for _ in range(100)]).state_dict(),
    "texts, numbers and a pair as keys": {**{f"{n}": n for n in _MANY}, **{n: 0 for n in _MANY}, (1, 2): 0},
    "tuples as values": {n: (n, (n,)) for n in _MANY},
    "a long integer": [1 << 70],
    "other values": [
        3 + 4j,
        torch.float16,
        torch.device("cpu"),
        torch.strided,
        torch.Size([2] * 5),
        torch.Size([2]),
    ],
    "a tensor with attributes": _with_attributes(torch.ones(2), note="mine"),
    "a parameter with attributes": _with_attributes(torch.nn.Parameter(torch.ones(2)), note="mine", tags=[1]),
    "tensors without memory": [torch.ones(2, device="meta"), torch.ones(2, dtype=torch.uint16)],
    "a buffer": torch.nn.Buffer(torch.ones(2)),
    "attributes of all kinds": _with_attributes(
        torch.ones(2), scale=torch.ones(1), _no_decay=True, axes=[1], before=torch.int8, sizes={"a": (1, 2)}
    ),
    "ranges of dimensions": {_DimRange(n, None, 9) for n in range(200)},
    "sets of texts and numbers": [set(), {"a"}, {f"{n}" for n in _MANY}, set(_MANY)],
}
_HOSTILE = {
    "tuples as keys": {(n,): 0 for n in _MANY},
    "long integers as keys": {n << 70: 0 for n in range(1, 301)},
    "tuples as keys of an OrderedDict": OrderedDict({(n,): 0 for n in _MANY}),
    "tuples as keys of a Counter": Counter({(n,): 1 for n in _MANY}),
    "tuples of a set": {(n,) for n in _MANY},
    "ranges of dimensions": {_DimRange(n, None, None) for n in _MANY},
}


def _pickles(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    with zipfile.ZipFile(file) as found:
        return found.read(next(name for name in found.namelist() if name.endswith("data.pkl")))


@pytest.mark.parametrize("name", _HONEST)
def test_what_pytorch_writes_of_honest_values_is_opened(name: str) -> None:
    assert plain_data_problem(_pickles(_HONEST[name])) is None


@pytest.mark.parametrize("again", [b"h\0", b"2"], ids=["under another name", "twice on the stack"])
def test_a_list_that_grows_elsewhere_is_not_taken_for_what_it_was(again: bytes) -> None:
    """A set is made of a list, which gets its items where another reference to it lies."""
    tuples = b"".join(b"M" + n.to_bytes(2, "little") + b"\x85" for n in _MANY)
    grown = b"\x80\x02c__builtin__\nset\n]q\0" + again + b"(" + tuples + b"e0\x85R."
    assert pickle.loads(grown) == {(n,) for n in _MANY}
    assert plain_data_problem(grown) is not None


class _Call:
    """What calls a function when it is opened."""

    def __init__(self, function: Any, *arguments: Any, state: Any = None) -> None:
        self._call = function, arguments, state

    def __reduce__(self) -> Any:
        return self._call


_U, _V2, _W = torch._utils, torch._tensor._rebuild_from_type_v2, torch.ones(2)
_HOOKS = OrderedDict({1: torch.Size})
_META = torch.float32, (4,), (1,), False
_WITHOUT_MEMORY = NestedTensor, torch.float32, (4,), (1,), 0, torch.strided, torch.device("cpu"), False
_WITH_STATE: dict[str, tuple[Any, ...]] = {
    "parameter": (_U._rebuild_parameter_with_state, _W, True, OrderedDict()),
    "tensor": (_V2, _U._rebuild_meta_tensor_no_storage, torch.Tensor, _META),
}
_STATES: dict[str, Any] = {
    "memory": {"data": _W},
    "a class": {"__class__": NestedTensor},
    "a dict": {"__dict__": {"size": 3}},
    "a method": {"size": 3},
    "a name that PyTorch asks for": {"__tensor_flatten__": 3},
    "hooks in a state": {"_backward_hooks": {1: torch.Size}},
    "a function": {"note": torch._utils._rebuild_tensor},
    "slots": (None, {"data": _W}),
    "an ordered state": OrderedDict({"data": _W}),
}
_OWN, _S = [0] * 9, {"a": 1}
_CALLS = {
    "bytearray": (_Call(bytearray, 1 << 40), "code of __builtin__.bytearray"),
    "UntypedStorage": (_Call(torch.UntypedStorage, 1 << 40), "code of torch.storage.UntypedStorage"),
    "LongTensor": (_Call(torch.LongTensor, 1 << 40), "code of torch.LongTensor"),
    "Tensor": (_Call(torch.Tensor, 1 << 40), "code of torch.Tensor"),
    "encode": (_Call(codecs.encode, "x", "idna"), "code of _codecs.encode"),
    "complex": (_Call(complex, "1" * 99), "complex as torch.save has it called"),
    "Size": (_Call(torch.Size, _OWN), "torch.Size as torch.save has it called"),
    "a list twice": ([_OWN, _Call(torch._utils._rebuild_tensor, _OWN)], "_rebuild_tensor as torch.save has"),
    "a list within twice": ([_OWN, _Call(torch._utils._rebuild_tensor, (1, _OWN))], "_rebuild_tensor as"),
    "a function among arguments": (
        _Call(torch._tensor._rebuild_from_type_v2, torch.UntypedStorage, torch.Tensor, (1 << 40,), {}),
        "_rebuild_from_type_v2 as torch.save has it called",
    ),
    "a tensor with a state": (
        _Call(torch._utils._rebuild_tensor, 1, 2, (3,), (4,), state={"a": 1}),
        "found one that gets a state",
    ),
    "a state twice": ([_S, _Call(OrderedDict, state=_S)], "256 keys"),
    **{
        f"{name} of a {kind}": (_Call(*call, state), "as torch.save has it called")
        for kind, call in _WITH_STATE.items()
        for name, state in _STATES.items()
    },
    "a state elsewhere": ([_S, _Call(*_WITH_STATE["parameter"], _S)], "as torch.save has it called"),
    "hooks": (_Call(_U._rebuild_tensor_v2, _W, 0, (2,), (1,), True, _HOOKS), "as torch.save has it called"),
    "hooks of a parameter": (_Call(_U._rebuild_parameter, _W, True, _HOOKS), "as torch.save has it called"),
    "hooks elsewhere": (
        [_HOOKS, _Call(_U._rebuild_parameter, _W, True, _HOOKS)],
        "as torch.save has it called",
    ),
    "a tensor without memory": (
        _Call(_U._rebuild_wrapper_subclass, *_WITHOUT_MEMORY),
        "code of torch._utils._rebuild_wrapper_subclass",
    ),
    "a tensor of a class without memory": (
        _Call(_V2, _U._rebuild_wrapper_subclass, NestedTensor, _WITHOUT_MEMORY, {}),
        "running code of torch.nested._internal.nested_tensor.NestedTensor",
    ),
    "a tensor of another class": (
        _Call(_V2, _U._rebuild_meta_tensor_no_storage, torch.nn.Parameter, _META, {}),
        "running code of torch.nn.parameter.Parameter",
    ),
}


@pytest.mark.parametrize("name", _CALLS)
def test_calls_that_cost_more_than_their_bytes_are_refused(name: str) -> None:
    value, problem = _CALLS[name]
    file = io.BytesIO()
    torch.save(value, file)
    with pytest.raises(UnsafeArtifactError, match=problem):
        open_pickle(file.getvalue(), "inputs", allow_pickle=False)


@pytest.mark.parametrize("name", _HOSTILE)
def test_keys_that_may_share_a_hash_are_counted(name: str) -> None:
    file = io.BytesIO()
    torch.save(_HOSTILE[name], file)
    with pytest.raises(DeserializeError, match="at most 256 keys"):
        open_pickle(file.getvalue(), "inputs", allow_pickle=False)
    assert open_pickle(file.getvalue(), "inputs", allow_pickle=True) == _HOSTILE[name]
