"""The page docs/coverage.md: what becomes of each program of the tests in PyTorch's hands and in ours.

`python -m tests.helpers.coverage` writes it, with `NAME...` after it for those programs alone and new ones;
`tests/test_coverage.py` fails where a run says something else.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from torch.export import ExportedProgram

from .cases import Table
from .examples import EXAMPLES
from .families import FAMILIES
from .families_more import MORE_FAMILIES
from .libraries import LIBRARIES
from .models import BEYOND, GROUPS
from .models_objects import OBJECTS, OBJECTS_BEYOND
from .oracles import LOSSES, Trips, trips_of, unexplained

PAGE = Path(__file__).resolve().parents[2] / "docs/coverage.md"

#: Tables of the page: a heading, and the models.
SECTIONS: dict[str, Table] = {
    **GROUPS,
    "Where PyTorch gives up": BEYOND,
    "Custom objects and prints": OBJECTS,
    "Custom objects where PyTorch gives up": OBJECTS_BEYOND,
    "Models of transformers": FAMILIES,
    "Further models of transformers": MORE_FAMILIES,
    "Models of diffusers and PyTorch Geometric": LIBRARIES,
    "Examples of torch.export": EXAMPLES,
}
#: Tables whose programs take long.
WIDE = (FAMILIES, MORE_FAMILIES, LIBRARIES, EXAMPLES)


class Row(NamedTuple):
    """One program: each cell `yes`, `no`, `outputs` (the same outputs, but something is lost) or `-`."""

    feature: str
    pytorch_saves: str
    pytorch_loads: str
    pytorch_equal: str
    saves: str
    loads: str
    equal: str
    pytorch_reads_ours: str
    reads_pytorchs: str
    needs_allow_pickle: str

    def __str__(self) -> str:
        return f"| {' | '.join(self)} |"


_COLUMNS = (
    *("program", "PyTorch saves", "loads", "equal", "pt2wire saves", "loads", "equal"),
    *("PyTorch reads pt2wire's", "pt2wire reads PyTorch's", "needs `allow_pickle`"),
)
_HEADER = f"| {' | '.join(_COLUMNS)} |\n|{' --- |' * len(_COLUMNS)}\n"

_TOP = """\
# Coverage

What becomes of each program of the tests when it is saved and loaded. No cell is typed by hand: `python -m
tests.helpers.coverage` measures them and writes this page, and a test fails where a run says something
else.

`yes` under *equal* means that nothing differs: graph, names, arguments by type, metadata, symbols with
their assumptions, signature, ranges, guards, module call graph, tree specs, notes, weights bit for bit with
strides and sharing, and outputs and side effects of two calls in a row. `outputs` means that those of the
calls are the same, and something else is not. `-` means that there was nothing to try. Two columns say how
well each reads the other's files. Files are loaded without options, but for the three that some need: the
classes of tensors that they hold as `types`, `allow_operators` for programs that print and for loss and
gradients with pooling and attention (see below), `allow_pickle=True` for programs with custom objects. The
last column says which files give more with `allow_pickle=True` than without. What neither of the two formats
keeps is left out of the comparison:

{losses}

Nor is compared what follows, which neither keeps as it was:

* an empty `custom` of a node is gone, a missing `nn_module_stack` is empty, and an empty `forward_arg_names`
  is None;
* a constant result of a subgraph has its value as `val`, and a symbolic number that tracing found to be a
  constant has that number;
* ranges of symbols that no value has are gone, since the assumptions of these symbols are in no file, unless
  they are integers that a call finds;
* the `type` of a node, the `target` of an input where it is not its name, nodes that get an attribute which
  nothing uses, and submodules that nothing calls, are gone; a constant tensor is no `persistent` one;
* nodes that `run_decompositions` adds to a loaded program may have other numbers in their names, and checks
  of sizes that the graph has already, as with `prefer_deferred_runtime_asserts_over_guards`, are not added
  a second time;
* a call that stands before the last input of a graph stands behind it;
* a `torch_fn` or `source_fn_stack` whose texts hold the `;` or `,` between its items comes back split there.

Nor does either keep what PyTorch notes for itself while it traces, most of which it notes anew when a
loaded program is decomposed or compiled: of a node `tensor_meta`, `example_value`, `seq_nr`,
`original_aten`, `desc`, `is_functional_regenerated`, `eager_input_vals`, whatever is None, and that the
`val` of a weight is an `nn.Parameter`, as in some strict exports; of a graph module `inline_constraints`,
`partition_names`, `module_call_specs`, `dynamo_compile_id` and `dynamo_flat_name_to_original_fqn`. What
users note stands under `custom`, which is kept.

Programs that call operators which trust sizes or indices are saved, with a warning, and loaded with
`allow_operators=[...]` alone: the error of `load` and the warning name all that the program needs, to be
pasted. PyTorch loads them without asking. Such operators are, in joint graphs of loss and gradients, those of
pooling, padding by replication, `grid_sample`, attention, bags of embeddings, weight norm and `cdist`; in
other programs, `torch.sparse_coo_tensor` and its like, `torch.sparse.mm` after `run_decompositions()`,
`segment_reduce`, and int4 weights (`_weight_int4pack_mm_for_cpu`).

PyTorch saves six other things that pt2wire refuses, by name. Two are texts that PyTorch pastes into
source: keys with quotes in dictionaries of inputs, and texts as inputs that hold quotes, escapes or control
characters other than tabs. Of programs with such keys, PyTorch can call only those that check no size behind
the key; of those with such texts, only the ones with control characters that end no line, which could steer
a terminal from a message. The third is a parameter of a class that is defined in a function, where no loader
finds it: PyTorch writes the class of no parameter, pt2wire that of each. Integers beyond 64 bits, which
Thrift cannot hold, are saved as JSON alone, with a warning; no C++ reads them, and where PyTorch's makes
other numbers of them, that of pt2wire is an error.

The fourth are names of weights, constants and modules with control characters other than tabs: PyTorch calls
such programs, and messages of pt2wire would show the names to a terminal. So are names with double quotes or
backslashes, whose programs PyTorch saves and loads, and cannot call. The fifth are inputs called `inf`,
`nan`, `infj`, `nanj`, `torch`, `pytree` or `fx_pytree`, for which `save` warns: in the source that PyTorch
generates, such an input stands in for the number or the module, so that `x + inf` adds the input. The sixth
are weights called like a subgraph, such as a buffer `true_graph_0` beside a `cond`, for which `save` warns:
PyTorch loads such a program and cannot call it, as both are one attribute. Submodules and inputs may be
called so. So are weights and modules called like a part of the module of a program, such as `graph`, `code`
or `meta`, unless they lie in another module.

Weights that were replaced after the export by some of another dtype or size are refused, since the graph says
otherwise; `save` warns, and `load(changed_weights=True)` takes them, as PyTorch does.

A custom object that holds a tensor comes back with one of its own, also where that shared memory with a
weight, so that a change of one is no longer one of the other. `save` warns of it.

Operators that return lists of numbers or of optional tensors, such as `int[]` or `Tensor?[]`, alone or among
other results, are refused by both.

Quantized dtypes such as `torch.quint8` as arguments, weights in layout `torch._mkldnn`, and weights of
subclasses that `torch.save` refuses, as where their parts see one memory as two dtypes, are refused by both.

A value that stands for a weight of a subclass whose pytree context holds a class of its own, such as a
dataclass in torchao's `Int8Tensor`, comes back with a plain tensor as its `val`, as PyTorch has it; a warning
names the subclass. Weights, opened with `allow_pickle=True` and `types`, and outputs are the same.

One tensor that is a weight and a constant comes back as two that share its memory, as do those of several
programs.

A note under `custom` that holds something else than texts, numbers, lists, tuples and dicts, such as bytes,
a tensor, an operator or a node, is refused by name on a call and on the graph, by PyTorch too. On an input,
an output, a subgraph or another node that is no call, whose notes PyTorch drops, pt2wire leaves it out, with
a warning.
A note of a class of its own, such as an `OrderedDict`, a `torch.Size` or a NumPy `float64`, comes back
without the class, as PyTorch has it; a warning says so.

Programs in which `torch.autocast` goes around control flow such as `torch.cond` keep calls of
`torch.amp.autocast_mode._enter_autocast` and `_exit_autocast`, and PyTorch does not save them. Where a region
is left open, or regions are not closed in the order opposite to that in which they were opened, pt2wire
refuses them too: such a program leaves autocast on behind it. Neither saves a dictionary of inputs with bytes
as keys, or a strict export that holds a custom object of its module as an attribute.

PyTorch merges `getitem` nodes that take one output, whenever it makes an `ExportedProgram`. Those that a
graph got afterwards come back, but a signature that `preserve_module_call_signature` asked for names the
first of them.

Calls of Triton kernels, which `run_decompositions(decompose_custom_triton_ops=True)` takes out of operators
made with `torch.library.triton_op`, are neither saved nor loaded yet; pt2wire refuses them by name. PyTorch
saves some of them on a machine with a GPU, and loads none. An operator that is left whole is one like others.

No programs are here that torch.export does not make: regions of `local_map` (it traces through them) and
`DTensor`, checkpoints of a strict export without a policy, branches and loops over custom objects of a
module, `jacfwd` and `hessian` of `torch.func`. Those with `grad`, `vjp` or `jacrev` of `torch.func` it makes
with constants that have no data, so that they compute nothing; pt2wire and PyTorch refuse to save them.
"""


def measure(name: str) -> Row:
    """What a run says of one program."""
    trips = trips_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.ERROR)  # PyTorch logs what it is about to raise
        try:
            pytorch_saves = _works(lambda: trips.pytorch_file)
            saves = _works(lambda: trips.our_file)
            return Row(
                name.replace("_", " "),
                _yes(pytorch_saves),
                *_outcome(trips, pytorch_saves, lambda: trips.pytorch_of_pytorch),
                _yes(saves),
                *_outcome(trips, saves, lambda: trips.ours_of_ours),
                _reads(trips, saves, lambda: trips.pytorch_of_ours),
                _reads(trips, pytorch_saves, lambda: trips.ours_of_pytorch),
                _needs_allow_pickle(trips, pytorch_saves, saves),
            )
        finally:
            logging.disable(logging.NOTSET)


def _outcome(trips: Trips, saved: bool, load: Callable[[], ExportedProgram]) -> tuple[str, str]:
    """The cells `loads` and `equal`."""
    if not saved:
        return "-", "-"
    if not _works(load):
        return "no", "-"
    return "yes", _equal(trips, load())


def _reads(trips: Trips, saved: bool, load: Callable[[], ExportedProgram]) -> str:
    loads, equal = _outcome(trips, saved, load)
    return equal if loads == "yes" else loads


def _needs_allow_pickle(trips: Trips, pytorch_saves: bool, saves: bool) -> str:
    """Whose files give more with `allow_pickle=True`."""

    def gains(saved: bool, usual: str, trusted: str) -> bool:
        _, equal = _outcome(trips, saved, lambda: getattr(trips, usual))
        return equal != "yes" and _outcome(trips, saved, lambda: getattr(trips, trusted))[1] != equal

    writers = {
        "PyTorch's": gains(pytorch_saves, "careful_pytorchs", "trusting_pytorchs"),
        "pt2wire's": gains(saves, "careful_ours", "trusting_ours"),
    }
    return ", ".join(writer for writer, gained in writers.items() if gained) or "no"


def _equal(trips: Trips, program: ExportedProgram) -> str:
    if not _works(lambda: trips.outputs(program)) or trips.outputs(program) != trips.outputs(trips.program):
        return "no"
    return "outputs" if unexplained(trips.losses(program)) else "yes"


def _works(work: Callable[[], object]) -> bool:
    try:
        work()
    except Exception:  # whatever PyTorch raises counts
        return False
    return True


def _yes(works: bool) -> str:
    return "yes" if works else "no"


def page(rows: dict[str, Row]) -> str:
    """The whole page, from the rows of all programs by name."""
    losses = "\n".join(f"* {loss.reason};" for loss in LOSSES)
    shown = [rows[name] for table in SECTIONS.values() for name in table]
    parts = [_TOP.format(losses=losses[:-1] + "."), _summary(shown)]
    for heading, table in SECTIONS.items():
        lines = "\n".join(str(rows[name]) for name in table)
        parts.append(f"## {heading}\n\n{_HEADER}{lines}\n")
    return "\n".join(parts)


def _summary(rows: list[Row]) -> str:
    """How many programs fare well, side by side."""

    def count(column: str, *cells: str) -> int:
        return sum(getattr(row, column) in cells for row in rows)

    return f"""\
| of {len(rows)} programs | PyTorch | pt2wire |
| --- | --- | --- |
| saved | {count("pytorch_saves", "yes")} | {count("saves", "yes")} |
| loaded again | {count("pytorch_loads", "yes")} | {count("loads", "yes")} |
| with the same outputs | {count("pytorch_equal", "yes", "outputs")} | {count("equal", "yes", "outputs")} |
| with nothing lost | {count("pytorch_equal", "yes")} | {count("equal", "yes")} |
| the other's files read, with the same outputs | {count("pytorch_reads_ours", "yes", "outputs")} | {
        count("reads_pytorchs", "yes", "outputs")
    } |
"""


def rows_on_page() -> dict[str, Row]:
    """The rows that the page has now."""
    rows = re.findall(r"^\| (.+? \| (?:yes|no) \| .+) \|$", PAGE.read_text(), re.MULTILINE)
    found = [Row(*cells) for row in rows if len(cells := row.split(" | ")) == len(Row._fields)]
    return {row.feature.replace(" ", "_"): row for row in found}


def main(names: list[str]) -> None:
    """Writes the page; measured are the programs named, and those that it lacks. Without names: all."""
    programs = [name for table in SECTIONS.values() for name in table]
    known = {name: row for name, row in rows_on_page().items() if names and name not in names}
    PAGE.write_text(page({name: known.get(name) or measure(name) for name in programs}))


if __name__ == "__main__":
    main(sys.argv[1:])
