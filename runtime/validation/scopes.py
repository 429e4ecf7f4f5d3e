"""What is known while graphs are checked: the names of one graph so far, and what all graphs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..generated import types
from ..items import by_owner
from ..names import check_value_name
from ..operators import HIGHER_ORDER, Target, TargetKind, allowing, parse_target, refusal
from ..permissions import Permissions
from ..treespecs import SpecNode
from .metadata import KnownMetadata
from .rules import Findings, Problem
from .values import Symbols

#: The kinds of values, with the field of `Graph` that describes each.
KINDS: Mapping[str, str] = {
    "tensor": "tensor_values",
    "sym_int": "sym_int_values",
    "sym_bool": "sym_bool_values",
    "sym_float": "sym_float_values",
    "custom_obj": "custom_obj_values",
}


class Pending(NamedTuple):
    """A subgraph that is still to be checked."""

    graph: types.Graph
    path: str
    depth: int


class ProgramState:
    """What the graphs of one program share.

    Attributes:
        findings: What is wrong so far.
        symbols: The program's symbols.
        permissions: What the caller permits.
        argument_names: Names of arguments that were checked; the empty one stands for a positional argument.
        metadata: Entries of nodes' metadata in which nothing was found, and the modules in them.
        identified: Subgraphs by the identifier that they are invoked with.
        modules: What is known of each graph that was checked, by the identity of the graph.
        custom_objects: Names of custom objects that are no value of a graph, so constants of the archive.
        pending: Subgraphs that are still to be checked; a list rather than recursion, since a file decides
            how deep they nest.
        tokens: Values of the program's graph that order effects, and are nothing else.
        beyond: Whether PyTorch's fields may hold stand-ins, beside fields of our own that hold the truth.
    """

    def __init__(
        self, findings: Findings, symbols: Symbols, permissions: Permissions, beyond: bool = False
    ) -> None:
        self.findings = findings
        self.symbols = symbols
        self.permissions = permissions
        self.argument_names: set[str] = {""}
        self.custom_objects: set[str] = set()
        self.metadata = KnownMetadata()
        self.identified: dict[str, types.Graph] = {}
        self.modules: dict[int, Scope] = {}
        self.pending: list[Pending] = []
        self.tokens: set[str] = set()
        self.beyond = beyond
        self._targets: dict[str, tuple[Target | None, Problem | None]] = {}

    def demand_beyond(self, path: str) -> None:
        """Notes a field of our own that holds what PyTorch's fields lack, so that the program must say so."""
        if not self.beyond:
            message = "expected a program that says what PyTorch cannot express of it, found none"
            self.findings.add("exact", path, message)

    def target(self, text: str) -> tuple[Target | None, Problem | None]:
        """A target taken apart, and what is wrong with it."""
        known = self._targets.get(text)
        if known is None:
            parsed = parse_target(text)
            known = self._targets[text] = (parsed, _problem(text, parsed, self.permissions))
        return known


def _problem(text: str, target: Target | None, permissions: Permissions) -> Problem | None:
    if target is None:
        return Problem("target", f"expected an operator or a symbolic function, found {text[:80]!r}")
    if (reason := refusal(target, permissions.allow_operators)) is not None:
        message = f"expected an operator that is permitted, found {text}: {reason}"
        return Problem("denied-operator", message, allowing(target))
    if target.kind is TargetKind.HIGHER_ORDER and target.name not in HIGHER_ORDER:
        return Problem("target", f"expected a supported higher-order operator, found {target.name[:80]!r}")
    return None


class Scope:
    """One graph while it is checked.

    Attributes:
        kinds: The kind of each value defined so far.
        taken: Names of values and nodes so far. In torch.fx they share one space of names, that of variables.
        subgraphs: Subgraphs by name. In torch.fx they are attributes of the graph's module, and may be called
            like a node.
        held: The tensors that the graph holds, by name of the attribute.
        structures: The tree specs that the graph holds, by name; None for a function.
        getters: Of the nodes that get a subgraph or such a tensor in torch.fx, what each gets, by name.
        unnamed: Those of them that have no name but that of the subgraph.
        placed: Names of the subgraphs that the node has inside of containers.
        items: The nodes of `Graph.getitems` whose calls are still to come.
        twins: By the name of a node that takes an output which another one takes, the name of the output.
        nones: The names of nodes that take None out of the outputs of a call.
        levels: Levels on the stacks of functorch and autocast that were opened and not closed, by the rule
            that says so.
        node: The node that is being checked; None for inputs and outputs.
        at: Where we are in the graph. A path is spelled out only for a finding.
    """

    __slots__ = (
        "at",
        "depth",
        "findings",
        "getters",
        "graph",
        "held",
        "items",
        "kinds",
        "levels",
        "node",
        "nones",
        "path",
        "placed",
        "program",
        "structures",
        "subgraphs",
        "taken",
        "twins",
        "unnamed",
    )

    def __init__(self, program: ProgramState, graph: types.Graph, path: str, depth: int) -> None:
        self.program = program
        self.findings = program.findings
        self.graph = graph
        self.path = path
        self.depth = depth
        self.kinds: dict[str, str] = {}
        self.taken: set[str] = set()
        self.subgraphs: dict[str, types.Graph] = {}
        self.held: dict[str, types.GraphConstant] = {}
        self.structures: dict[str, SpecNode | None] = {}
        self.getters: dict[str, str] = {}
        self.unnamed: set[str] = set()
        self.placed: set[str] = set()
        self.items = by_owner(graph.getitems)
        self.twins: dict[str, str] = {}
        self.nones: set[str] = set()
        self.levels: Counter[str] = Counter()
        self.node: types.Node | None = None
        self.at: tuple[str | int, ...] = ()

    def held_attributes(self) -> set[str]:
        """Names of the tensors and tree specs that the graph holds. In torch.fx its module has them."""
        return {*self.held, *(structure.target for structure in self.graph.structures or ())}

    def place(self) -> str:
        """The path of where we are."""
        pieces = (f"[{piece}]" if isinstance(piece, int) else f".{piece}" for piece in self.at)
        return self.path + "".join(pieces)

    def add(self, rule: str, message: str, suffix: str = "", hint: str | None = None) -> None:
        """Adds a finding at where we are."""
        if self.node is not None:
            message = f"{message}, in node {self.node.name or '(unnamed)'!r} ({self.node.target[:80]})"
        self.findings.add(rule, self.place() + suffix, message, hint)

    def check_name(
        self, name: str, suffix: str = "", check: Callable[[str], str | None] = check_value_name
    ) -> bool:
        """Whether a name is fine; adds a finding where not. By default it is the name of a value or node."""
        problem = check(name)
        if problem is not None:
            self.add("name", f"expected an identifier, found {name[:80]!r}: {problem}", suffix)
        return problem is None

    def use(self, name: str, kind: str) -> None:
        """A value is used as a kind."""
        found = self.kinds.get(name)
        if found == kind:
            return
        if found is None:
            self.add("undefined-name", f"expected a value that is defined before, found {name[:80]!r}")
        else:
            self.add("wrong-kind", f"expected a {kind}, found {name!r}, which is a {found}")

    def define(self, name: str, kind: str, own: bool = False) -> None:
        """A value is defined.

        Args:
            name: Its name.
            kind: Its kind.
            own: Whether the node that defines it has that name too, as its one result.
        """
        if not own:
            self.take(name)
            self.check_name(name)
        if name not in getattr(self.graph, KINDS[kind]):
            self.add("missing-value", f"expected {name[:80]!r} in {KINDS[kind]}, found nothing")
        self.kinds[name] = kind

    def take(self, name: str) -> None:
        """A name is given to a value or a node."""
        if name in self.taken:
            self.add("duplicate-name", f"expected a name that is defined once, found {name[:80]!r} again")
        self.taken.add(name)
