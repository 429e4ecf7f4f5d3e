"""What differs between two programs, or two archives, in words that a user knows. Needs no torch."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..archive.payloads import Payload, same_bytes
from ..archives import Archive
from ..arguments import described, mistaken
from ..collector import collector_off
from ..generated import types
from ..spelling import describe_tensor
from .canonical import Names, bound_name, canonicalize_in_place
from .encoding import copied, encoded
from .graphs import GraphPair, pair_graphs
from .naming import named_values, rename, rename_signature
from .numbers import apart
from .parts import Difference, added, changed, compare, compare_sets, compare_tables, removed

Program = types.ExportedProgram


def diff(a: Program | Archive, b: Program | Archive) -> list[Difference]:
    """Lists what differs between two programs; nothing exactly if their digests are equal.

    Names, the order of independent nodes and whatever else `canonicalize` takes away make no difference.
    Nodes are aligned by what they compute, so that one more node is one difference (and one more for each
    node that uses it), wherever it stands.

    Args:
        a: A tree, or an archive.
        b: Another one of the same kind. Of archives all programs are compared, by name, with weights and
            constants; but two archives of one program each are compared whatever the programs are called.

    Returns:
        The differences in order: program, signature, graph, weights.

    Raises:
        TypeError: `a` and `b` are no trees or archives, or one of each.
        Exception: As for `canonicalize`.

    Example:
        >>> import pt2wire, torch
        >>> def program(slope):
        ...     return torch.export.export(torch.nn.LeakyReLU(slope), (torch.ones(2),))
        >>> for difference in diff(pt2wire.to_tree(program(0.1)), pt2wire.to_tree(program(0.2))):
        ...     print(difference)
        graph.nodes['leaky_relu'].inputs['negative_slope']: 0.1 -> 0.2
    """
    with collector_off():
        if isinstance(a, Program) and isinstance(b, Program):
            return _diff_programs(a, b)
        if isinstance(a, Archive) and isinstance(b, Archive):
            return list(_diff_archives(a, b))
    other = next((each for each in (a, b) if not isinstance(each, Program | Archive)), None)
    if other is not None:
        raise mistaken("two trees or two archives", other)
    raise TypeError(f"expected two trees or two archives, found {described(a)} and {described(b)}")


def _diff_archives(a: Archive, b: Archive) -> Iterator[Difference]:
    if len(a.programs) == len(b.programs) == 1:
        (name_a,), (name_b,) = a.programs, b.programs
        yield from _diff_stored(a, name_a, b, name_b)
        return
    for name in a.programs:
        if name in b.programs:
            for found in _diff_stored(a, name, b, name):
                yield Difference(f"{name}: {found.path}", found.kind, found.before, found.after)
        else:
            yield removed(f"programs[{name!r}]", "a program")
    yield from (added(f"programs[{name!r}]", "a program") for name in b.programs if name not in a.programs)


def _diff_stored(a: Archive, name_a: str, b: Archive, name_b: str) -> Iterator[Difference]:
    yield from _diff_programs(a.programs[name_a], b.programs[name_b])
    yield from _diff_payloads("weights", a.weights.get(name_a, {}), b.weights.get(name_b, {}))
    yield from _diff_payloads("constants", a.constants.get(name_a, {}), b.constants.get(name_b, {}))


def _diff_payloads(path: str, a: Mapping[str, Payload], b: Mapping[str, Payload]) -> Iterator[Difference]:
    groups_a, groups_b = _sharing(a), _sharing(b)
    for fqn in sorted({*a, *b}):
        place = f"{path}[{fqn!r}]"
        if fqn not in b:
            yield removed(place, _describe_payload(a[fqn]))
        elif fqn not in a:
            yield added(place, _describe_payload(b[fqn]))
        else:
            yield from _diff_payload(place, a[fqn], b[fqn])
            if groups_a[fqn] != groups_b[fqn]:
                yield changed(f"{place}, in one memory with", groups_a[fqn], groups_b[fqn])


def _diff_payload(path: str, a: Payload, b: Payload) -> Iterator[Difference]:
    for field in a.meta.FIELD_IDS:
        if field != "path_name":
            yield from compare(f"{path}.{field}", getattr(a.meta, field), getattr(b.meta, field))
    if len(a.data) != len(b.data):
        yield changed(f"{path}, its payload", f"{len(a.data)} bytes", f"{len(b.data)} bytes")
    elif not same_bytes(a.data, b.data):
        before, after = (
            f"bytes of SHA-256 {hashlib.sha256(payload.data).hexdigest()[:16]}..." for payload in (a, b)
        )
        distance = apart(a, b)
        yield changed(f"{path}, its payload", before, after if distance is None else f"{after} ({distance})")


def _describe_payload(payload: Payload) -> str:
    meta = payload.meta.tensor_meta
    return "a pickled object" if meta is None else describe_tensor(meta)


def _sharing(payloads: Mapping[str, Payload]) -> dict[str, list[str]]:
    """For each weight the others in the same payload."""
    groups: dict[str, list[str]] = {}
    for fqn in sorted(payloads):
        groups.setdefault(payloads[fqn].meta.path_name, []).append(fqn)
    return {
        fqn: [other for other in groups[payload.meta.path_name] if other != fqn]
        for fqn, payload in payloads.items()
    }


def _diff_programs(original_a: Program, original_b: Program) -> list[Difference]:
    a, b = copied(original_a), copied(original_b)
    names_a, names_b = canonicalize_in_place(a), canonicalize_in_place(b)
    if encoded(a) == encoded(b):
        return []
    return list(_diff_canonical(a, names_a, b, names_b)) or [
        changed("graph", "one program", "another one that differs in a way that no path describes")
    ]


def _diff_canonical(a: Program, names_a: Names, b: Program, names_b: Names) -> Iterator[Difference]:
    for field in ("schema_version", "torch_version"):
        yield from compare(field, getattr(a, field), getattr(b, field))
    yield from compare("verifiers", a.verifiers, b.verifiers)
    yield from compare_tables("opset_version", a.opset_version, b.opset_version)
    yield from compare_tables("range_constraints", a.range_constraints, b.range_constraints)
    yield from compare_sets("guards_code", a.guards_code, b.guards_code)
    one, other = a.graph_module, b.graph_module
    inputs = _paired(_inputs(one, names_a), _inputs(other, names_b))
    outputs = _paired(_outputs(one), _outputs(other))
    pair = pair_graphs(
        one.graph,
        names_a,
        other.graph,
        names_b,
        dict(name for left, right in inputs if left and right for name in left.names_beside(right)),
        [name for left, right in outputs if left and right for name in left.names_beside(right)],
    )
    for module, names in ((one, pair.names_a), (other, pair.names_b)):
        rename_signature(module.signature, names)
        rename(named_values(module.module_call_graph), names)
    found = [
        *_diff_ends("signature.inputs", inputs, pair),
        *pair.differences("graph"),
        *_diff_ends("signature.outputs", outputs, pair),
        *compare_tables(
            "treespec_namedtuple_fields", one.treespec_namedtuple_fields, other.treespec_namedtuple_fields
        ),
        *compare_tables(
            "module_call_graph",
            {entry.fqn: entry for entry in one.module_call_graph},
            {entry.fqn: entry for entry in other.module_call_graph},
        ),
    ]
    yield from found or pair.order_difference("graph")


@dataclass(slots=True)
class _End:
    """An input or output of a program.

    Attributes:
        key: What it is aligned by: a weight's name, or a position.
        label: What a path calls it.
        argument: What the graph has at its place.
        spec: What the signature says of it.
    """

    key: object
    label: str
    argument: types.Argument
    spec: types.InputSpec | types.OutputSpec

    def names_beside(self, other: _End) -> list[tuple[str, str]]:
        """Pairs of values that are the same one, if the two ends are."""
        names = [[value.name for value in named_values(end.argument)] for end in (self, other)]
        return list(zip(*names, strict=False))


_Pairs = list[tuple[_End | None, _End | None]]


def _inputs(module: types.GraphModule, names: Names) -> list[_End]:
    old = {canonical: name for name, canonical in names.values.items()}
    ends = []
    position = 0
    for argument, spec in zip(module.graph.inputs, module.signature.input_specs, strict=True):
        fqn = bound_name(spec)
        if fqn is not None:
            ends.append(_End((spec.type, fqn), repr(fqn), argument, spec))
        else:
            values = named_values(argument)
            label = repr(old[values[0].name]) if values else str(position)
            ends.append(_End(position, label, argument, spec))
            position += 1
    return ends


def _outputs(module: types.GraphModule) -> list[_End]:
    ends = []
    positions: Counter[str] = Counter()
    for argument, spec in zip(module.graph.outputs, module.signature.output_specs, strict=True):
        fqn = bound_name(spec)
        number = positions[spec.type]
        positions[spec.type] += 1
        kind = "" if spec.type == "user_output" else f"{spec.type} "
        label = str(number) if fqn is None else repr(fqn)
        ends.append(_End((spec.type, number if fqn is None else fqn), kind + label, argument, spec))
    return ends


def _paired(a: list[_End], b: list[_End]) -> _Pairs:
    """Ends of two programs side by side, those that only one has alone."""
    if sum(isinstance(end.key, int) for end in a) != sum(isinstance(end.key, int) for end in b):
        # One input more would shift all behind it, so their names count.
        for end in (*a, *b):
            end.key = end.label if isinstance(end.key, int) else end.key
    others = {end.key: end for end in b}
    pairs: _Pairs = [(end, others.pop(end.key, None)) for end in a]
    return [*pairs, *((None, end) for end in others.values())]


def _diff_ends(path: str, pairs: _Pairs, graphs: GraphPair) -> Iterator[Difference]:
    for a, b in pairs:
        if a is None or b is None:
            end = a or b
            assert end is not None
            place = f"{path}[{end.label}]"
            yield added(place, end.spec) if a is None else removed(place, end.spec)
            continue
        place = f"{path}[{a.label}]"
        found = [*compare(place, a.spec, b.spec)] or [*compare(place, a.argument, b.argument)]
        yield from found
        if path.endswith(".inputs"):
            for value in named_values(a.argument):
                yield from graphs.input_differences(place, value.name)
