"""Changes of programs that leave them well formed, and whether what loads is a program that can be used.

Values are exchanged for values of the same field, in the same program or another one, so that many of the
changed programs pass all checks. These must run, or fail as a computation does: a size that does not fit is
the author's, a name that Python does not find is a check that is missing.
"""

from __future__ import annotations

import copy
import io
import json
import random
from collections import defaultdict
from functools import cache
from typing import Any

import pt2wire
import torch
from pt2wire.generated import CodecError, json_codec, types
from torch.export import ExportedProgram

from .models import MODELS
from .mutations import places

_PROGRAMS = (
    *("guard_on_remainder", "keyword_arguments_in_another_order", "cond_nested", "scan_with_reverse"),
    *("while_loop_over_sizes", "autocast_in_a_region", "buffer_mutation_decomposed", "lists_of_tensors"),
)
_GUARDS = (
    *("L['{0}'].size()[{1}] > 0", "L['{0}'].stride()[0] > {1}", "L['{0}'] >= {1}"),
    *("max(L['{0}'].size()[0], {1}) > 1 / {1}", "L['{0}'].item() == {1}", "L['flat_args'][{1}].dim() >= 0"),
)
# What Python raises where code is wrong, not what it computes with.
_ACCIDENTS = (NameError, SyntaxError, AttributeError, TypeError, KeyError, RecursionError, StopIteration)


@cache
def _archives() -> dict[str, bytes]:
    found = {}
    for name in _PROGRAMS:
        file = io.BytesIO()
        pt2wire.save(MODELS[name].program(), file, formats=("json",))
        found[name] = file.getvalue()
    return found


@cache
def _plains() -> dict[str, Any]:
    return {name: json.loads(_document(data)) for name, data in _archives().items()}


def _document(data: bytes) -> bytes:
    return json_codec.encode(pt2wire.read(io.BytesIO(data)).programs["model"])


@cache
def _by_field() -> dict[str, list[Any]]:
    """All values of all programs, by the name of their field."""
    found = defaultdict(list)
    for plain in _plains().values():
        for holder, key in places(plain):
            if isinstance(key, str):
                found[key].append(holder[key])
    return found


def of_calls(chance: random.Random) -> bytes:
    """An archive with a changed program."""
    name = chance.choice(_PROGRAMS)
    plain = copy.deepcopy(_plains()[name])
    for _ in range(chance.choice([1, 1, 1, 2])):
        _change(plain, chance)
    archive = pt2wire.read(io.BytesIO(_archives()[name]))
    file = io.BytesIO()
    try:
        archive.programs["model"] = json_codec.from_plain(types.ExportedProgram, plain)
        pt2wire.write(archive, file, formats=("json",), allow_unsound=True)
    except (CodecError, pt2wire.Pt2WireError):
        return b""
    return file.getvalue()


def _change(plain: Any, chance: random.Random) -> None:
    module = plain["graph_module"]
    if chance.random() < 0.15:
        names = module["module_call_graph"][0]["signature"]["forward_arg_names"]
        guard = chance.choice(_GUARDS).format(chance.choice([*names, "nope"]), chance.randrange(3))
        plain["guards_code"].append(guard)
        return
    parts = [
        module["graph"]["nodes"],
        module["graph"],
        module["signature"],
        module["module_call_graph"],
        plain,
    ]
    found = list(places(chance.choice(parts)))
    lists = [holder for holder, key in found if isinstance(key, int) and holder]
    kind = chance.randrange(8)
    if kind < 4:
        holder, key = chance.choice([(holder, key) for holder, key in found if isinstance(key, str)])
        alike = [there[at] for there, at in places(plain) if at == key]
        holder[key] = copy.deepcopy(chance.choice(alike if chance.random() < 0.6 else _by_field()[key]))
    elif kind == 4 and (named := [(holder, key) for holder, key in found if key == "arg"]):
        holder, key = chance.choice(named)
        holder[key] = copy.deepcopy(chance.choice(_by_field()["arg"]))
    elif lists:
        items = chance.choice(lists)
        at, other = chance.randrange(len(items)), chance.randrange(len(items))
        if kind == 5:
            del items[at]
        elif kind == 6:
            items.insert(at, copy.deepcopy(items[other]))
        else:
            items[at], items[other] = items[other], items[at]


def accident(program: ExportedProgram, args: Any, kwargs: Any, *, thorough: bool) -> str | None:
    """What goes wrong when a program is used, but for what a computation may raise.

    Args:
        program: The program, loaded.
        args: What it is called with.
        kwargs: Likewise.
        thorough: Whether it is decomposed as well, which takes longer than all else.
    """
    stage = "module()"
    try:
        module = program.module()
        stage = "the call"
        module(*args, **kwargs)
        stage = "printing"
        str(program)
        if thorough:
            stage = "run_decompositions"
            program.run_decompositions().module()(*args, **kwargs)
    except _ACCIDENTS as error:
        return f"{stage} raised {type(error).__name__}: {error}"
    except Exception as error:  # a program may compute what cannot be computed
        if stage == "module()":
            return f"{stage} raised {type(error).__name__}: {error}"
    finally:
        torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth(0)  # of a vmap that failed
    return None
