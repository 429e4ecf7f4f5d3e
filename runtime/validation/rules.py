"""The rules of validation, as a table, and the list that findings are collected in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from ..errors import DeserializeError, UnsafeArtifactError, plain, shown_path
from ..findings import Finding


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that holds for every artifact.

    Attributes:
        id: Short stable name, shown with each finding.
        checked: Which part of validation looks at it: `types`, `tree`, `payloads`, `operators`, `classes` or
            `file`.
        purpose: What holds, and where it is not plain, why.
        unsafe: Whether an artifact that breaks it could run code or reach outside of itself.
    """

    id: str
    checked: str
    purpose: str
    unsafe: bool = False


_RULES = (
    Rule("type", "types", "A value of a tree that was made or changed by hand has the type of its field."),
    Rule("schema-version", "tree", "The schema version is one that this version of pt2wire reads."),
    Rule("opset-version", "tree", "Operator set versions are non-negative and belong to a namespace."),
    Rule("range", "tree", "A symbol's range is not empty, and the symbol has a proper name."),
    Rule("expression", "tree", "A symbolic expression is in the language that exporters write.", unsafe=True),
    Rule(
        "expression-sort", "tree", "An integer or float is described by a number, a boolean by a condition."
    ),
    Rule("symbol", "tree", "A symbol has the same assumptions everywhere, else it would be two symbols."),
    Rule("undeclared-symbol", "tree", "An unbacked symbol has a range constraint."),
    Rule("hint", "tree", "The hint of an expression has the expression's type."),
    Rule(
        "guard",
        "tree",
        "A guard is in the small language that exporters write, and a condition on inputs that there are.",
        unsafe=True,
    ),
    Rule("name", "tree", "A name that torch.fx pastes into source is an identifier.", unsafe=True),
    Rule(
        "fqn", "tree", "The name of a weight or module cannot end the string it is pasted into.", unsafe=True
    ),
    Rule("fqn-clash", "tree", "No weight takes another's place in the modules that PyTorch makes of names."),
    Rule("constant-text", "tree", "A string input cannot end the string it is pasted into.", unsafe=True),
    Rule("duplicate-name", "tree", "A name is defined once in its graph."),
    Rule("undefined-name", "tree", "A name is defined before it is used."),
    Rule("wrong-kind", "tree", "A value is used as what it is: tensor, symbolic number, custom object."),
    Rule("missing-value", "tree", "Each value that is defined has a description: tensor metadata and so on."),
    Rule("tensor-meta", "tree", "Sizes, strides and offset are sane, dtype, layout and device known."),
    Rule("argument", "tree", "An argument is of a kind that is allowed at its place."),
    Rule("argument-name", "tree", "The arguments of an operator have distinct names."),
    Rule(
        "subgraph",
        "tree",
        "Subgraphs of one name are equal, and are called with as many operands as they take.",
    ),
    Rule(
        "held-tensor", "tree", "A tensor that a subgraph holds has the bytes that its description asks for."
    ),
    Rule(
        "flat-apply",
        "tree",
        "A call of `flat_apply` calls a function of the table, with values as its tree spec asks for.",
        unsafe=True,
    ),
    Rule("depth", "tree", "Subgraphs and dictionaries are not nested without bound."),
    Rule(
        "call-text",
        "tree",
        "A method of a custom object has a public name, and a format names arguments, not what is in them.",
        unsafe=True,
    ),
    Rule(
        "target",
        "tree",
        "A node calls an operator or a function of the table of symbolic functions.",
        unsafe=True,
    ),
    Rule(
        "denied-operator",
        "tree",
        "A node calls nothing that reaches files, processes or raw memory.",
        unsafe=True,
    ),
    Rule("function-call", "tree", "A Python function gets and gives as many values as it is made for."),
    Rule(
        "functorch-levels", "tree", "A graph leaves no level behind on the stack of functorch.", unsafe=True
    ),
    Rule(
        "autocast-levels",
        "tree",
        "A graph closes each region of autocast that it opens, and no other.",
        unsafe=True,
    ),
    Rule("signature-inputs", "tree", "The signature has one input spec for each graph input, naming it."),
    Rule("signature-outputs", "tree", "The signature has one output spec for each graph output, naming it."),
    Rule("duplicate-fqn", "tree", "A weight is the input of a program once."),
    Rule("mutation-target", "tree", "What an output updates is an input of that kind."),
    Rule("output-order", "tree", "Outputs that update something come before those that are returned."),
    Rule("module-calls", "tree", "The module call graph begins with the whole program, and its names exist."),
    Rule("treespec", "tree", "A tree spec is in the language that PyTorch writes.", unsafe=True),
    Rule(
        "treespec-leaves",
        "tree",
        "A tree spec has as many leaves as there are values, but for what a program returns.",
    ),
    Rule("metadata", "tree", "Metadata of nodes and graphs is in the format that loading takes apart."),
    Rule(
        "module-path",
        "tree",
        "The path of a module stays a text in the source that unflattening makes of it.",
        unsafe=True,
    ),
    Rule("exact", "tree", "A field of our own says what PyTorch's field says, only more exactly."),
    Rule("writer", "tree", "A program with fields of our own says who wrote them."),
    Rule(
        "payload-missing", "payloads", "Every weight, constant and custom object of the graph has a payload."
    ),
    Rule(
        "payload-absent", "payloads", "A payload has bytes, unless the program was saved without its weights."
    ),
    Rule(
        "payload-place",
        "payloads",
        "Parameters and persistent buffers are weights; other buffers and constants are constants.",
    ),
    Rule("payload-meta", "payloads", "A payload's sizes, strides and offset are sane numbers."),
    Rule("payload-differs", "payloads", "A payload is described as the graph describes it."),
    Rule("payload-kind", "payloads", "A payload is a parameter where the signature says so."),
    Rule("payload-pickled", "payloads", "A payload is not pickled, since unpickling runs code.", unsafe=True),
    Rule("payload-size", "file", "A payload has the bytes that its sizes, strides and offset reach to."),
    Rule("payload-record", "payloads", "A payload's record is a plain file name; one record has one dtype."),
    Rule("unknown-operator", "operators", "An operator is registered in this process."),
    Rule(
        "unknown-class",
        "classes",
        "A class in a tree spec is registered with pytree in this process, and made so.",
    ),
    Rule("attribute", "classes", "No part of a weight's name is one that its module has: `forward`, `code`."),
    Rule("operator-arguments", "operators", "The arguments of an operator fit its schema."),
    Rule("operator-returns", "operators", "The outputs of an operator fit its schema."),
    Rule(
        "sparse-flow",
        "operators",
        "Sparse tensors, and what lies in their memory, go to operators that keep them sound.",
        unsafe=True,
    ),
    Rule("file", "file", "The file is an archive that can be read, and each record decodes."),
    Rule(
        "example-inputs",
        "file",
        "The example inputs are there, and whole: without them stand-ins on the meta device are loaded.",
    ),
    Rule("more", "file", "So many findings are listed, and no more."),
    Rule("forms-differ", "file", "The JSON and the Thrift form of a program are the same program."),
)

#: All rules by id.
RULES: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in _RULES})


# A file decides how many things are wrong with it, and how they are called. Listed in full, they would take
# more memory than the file.
_LISTED = 1_000
_MOST_TEXT = 2_000  # characters of a path or a message


class Problem(NamedTuple):
    """What is wrong with something, before it is known where that is."""

    rule: str
    message: str
    hint: str | None = None


class Findings:
    """What one validation has found; the last one says so where there is more."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[Finding] = []

    def add(self, rule: str, path: str, message: str, hint: str | None = None) -> None:
        """Adds a finding of a rule."""
        self._append(Finding(rule, _shortened(path), _shortened(message), hint, RULES[rule].unsafe))

    def add_error(self, rule: str, path: str, error: DeserializeError) -> None:
        """Adds what a parser of a small language raised; it knows best whether the text was unsafe."""
        where = f" ({shown_path(error.path)})" if error.path else ""
        unsafe = isinstance(error, UnsafeArtifactError)
        message = _shortened(f"{error.message}{where}")
        self._append(Finding(rule, _shortened(path), message, error.hint, unsafe))

    def _append(self, finding: Finding) -> None:
        if len(self.found) < _LISTED:
            self.found.append(finding)
        elif len(self.found) == _LISTED:
            message = f"expected at most {_LISTED} findings to list, found more"
            self.found.append(Finding("more", "findings", message, None, False))


def _shortened(text: str) -> str:
    return plain(text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}...")
