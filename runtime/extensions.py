"""Operators of extensions: what nodes call that is no operator of PyTorch's, by handlers that users register.

Such an operator is written as `#NAMESPACE:NAME`, as PyTorch writes it. What text stands for which operator is
left to the handler; that it is one of the registered type, whose name is that text, is checked here.
"""

from __future__ import annotations

from typing import Any, Protocol

from .errors import DeserializeError, Pt2WireError, SerializeError
from .operators import Target, TargetKind, parse_target


class ExtensionHandler(Protocol):
    """What `register_extension` takes: a class whose methods are class methods, or an object.

    Subclasses of PyTorch's class of the same name will do.
    """

    def namespace(self) -> str:
        """The namespace of the operators: identifiers, with dots between them."""

    def to_op_name(self, op: Any) -> str:
        """The name of an operator in the namespace: identifiers, with dots between them."""

    def from_op_name(self, name: str) -> Any:
        """The operator of a name. The name may come from a file that nobody vouches for: look it up in a
        table, never follow it as attributes. Any exception says that there is none.
        """

    def op_schema(self, op: Any) -> Any:
        """The operator's `torch.FunctionSchema`, by which its arguments and results are written."""


_METHODS = ("namespace", "to_op_name", "from_op_name", "op_schema")
_GRAMMAR = "identifiers with dots between them"

_by_type: dict[type, tuple[str, ExtensionHandler]] = {}
_by_namespace: dict[str, tuple[type, ExtensionHandler]] = {}


def register_extension(op_type: type, extension_handler: ExtensionHandler | type[ExtensionHandler]) -> None:
    """Have operators of a type of one's own saved and loaded, for as long as the process runs.

    It takes what `torch._export.serde.serialize.register_extension` takes and writes what PyTorch writes, so
    that PyTorch reads files of pt2wire and the other way round where the handler is registered with both.
    A handler that is registered with PyTorch only is not used: it may not be made for files of strangers.
    Programs with such operators are of a dialect of their own, whose verifier permits the type.

    Args:
        op_type: The type of the operators, of which `node.target` is an instance. They have to be hashable
            and to have a `__name__`, as torch.fx demands of what a node calls. Subclasses need a handler of
            their own.
        extension_handler: Translates between operators and names; see `pt2wire.ExtensionHandler`.

    Raises:
        TypeError: An argument is not of that kind.
        ValueError: The type belongs to PyTorch or to Python itself, the namespace is no text of identifiers
            with dots between them, or either has a handler already.

    Example:
        >>> import pt2wire, torch
        >>> class Doubling:
        ...     __name__ = "double"
        ...     def __call__(self, x):
        ...         return x * 2
        >>> class Verifier(torch._export.verifier.Verifier):
        ...     dialect = "MINE"
        ...     def allowed_op_types(self):
        ...         return (*super().allowed_op_types(), Doubling)
        >>> class Handler:
        ...     ops = {"double": Doubling()}
        ...     namespace = staticmethod(lambda: "mine")
        ...     to_op_name = staticmethod(lambda op: op.__name__)
        ...     from_op_name = ops.__getitem__
        ...     op_schema = staticmethod(lambda op: torch.ops.aten.relu.default._schema)
        >>> pt2wire.register_extension(Doubling, Handler)
        >>> ep = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> (relu,) = ep.graph.find_nodes(op="call_function", target=torch.ops.aten.relu.default)
        >>> relu.target = Handler.ops["double"]
        >>> ep = ep._update(ep.graph_module, ep.graph_signature, verifiers=[Verifier])
        >>> pt2wire.to_tree(ep).graph_module.graph.nodes[0].target
        '#mine:double'
    """
    if not isinstance(op_type, type):
        raise TypeError(f"expected a type of operators, found {op_type!r:.80}")
    if op_type.__module__.partition(".")[0] in ("torch", "builtins"):
        raise ValueError(f"expected a type of your own, found {op_type.__module__}.{op_type.__qualname__}")
    if missing := [name for name in _METHODS if not callable(getattr(extension_handler, name, None))]:
        raise TypeError(f"expected a handler with {', '.join(_METHODS)}, found one without {missing[0]}")
    handler: Any = extension_handler
    namespace = handler.namespace()
    if not isinstance(namespace, str):
        raise TypeError(f"expected a namespace as text, found {namespace!r:.80}")
    if parse_target(f"#{namespace}:x") is None:
        raise ValueError(f"expected a namespace of {_GRAMMAR}, found {namespace!r:.80}")
    if op_type in _by_type:
        raise ValueError(f"{op_type.__qualname__} has a handler already, for {_by_type[op_type][0]!r}")
    if namespace in _by_namespace:
        raise ValueError(
            f"namespace {namespace!r} has a handler already, for {_by_namespace[namespace][0].__qualname__}"
        )
    _by_type[op_type] = (namespace, handler)
    _by_namespace[namespace] = (op_type, handler)


def is_extension(op: Any) -> bool:
    """Whether something is an operator of a registered type."""
    return type(op) in _by_type


def extension_text(op: Any) -> str | None:
    """The text that stands for an operator of an extension; None for what is none.

    Raises:
        SerializeError: The handler has no proper name for it.
    """
    if (registered := _by_type.get(type(op))) is None:
        return None
    namespace, handler = registered
    name = _asked(handler, "to_op_name", op, SerializeError)
    if not isinstance(name, str) or parse_target(f"#{namespace}:{name}") is None:
        raise SerializeError(
            f"expected a name of {_GRAMMAR} from the handler of {namespace!r}, found {name!r:.80}"
        )
    return f"#{namespace}:{name}"


def find_extension(target: Target) -> Any:
    """The operator of an extension that a target names.

    Raises:
        DeserializeError: No handler is registered for the namespace, or it gives no operator of its type and
            of that name, or one without a schema.
    """
    assert target.kind is TargetKind.EXTENSION
    text = f"#{target.namespace}:{target.name}"
    if (registered := _by_namespace.get(target.namespace)) is None:
        raise DeserializeError(
            f"expected an operator of an extension that is registered, found {text}",
            hint=f"Register a handler for the namespace {target.namespace!r} before loading, with "
            "pt2wire.register_extension",
        )
    op_type, handler = registered
    op = _asked(handler, "from_op_name", target.name, DeserializeError)
    if type(op) is not op_type or _asked(handler, "to_op_name", op, DeserializeError) != target.name:
        raise DeserializeError(
            f"expected an operator of type {op_type.__qualname__} named {target.name!r} from the handler of "
            f"{target.namespace!r}, found {op!r:.80}"
        )
    schema_of(op, DeserializeError)
    return op


def schema_of(op: Any, error: type[Pt2WireError] = SerializeError) -> Any:
    """The `torch.FunctionSchema` of an operator, be it one of PyTorch's or one of an extension.

    Args:
        op: The operator.
        error: What to raise if the handler has none for it.
    """
    if (registered := _by_type.get(type(op))) is None:
        return op._schema
    namespace, handler = registered
    schema = _asked(handler, "op_schema", op, error)
    if not (hasattr(schema, "arguments") and hasattr(schema, "returns")):
        raise error(
            f"expected a torch.FunctionSchema from the handler of {namespace!r}, found {schema!r:.80}"
        )
    return schema


def _asked(handler: Any, method: str, argument: Any, error: type[Pt2WireError]) -> Any:
    """What a method of a handler says; `error` is what it raises if the method fails."""
    try:
        return getattr(handler, method)(argument)
    except Exception as failure:  # handlers raise anything
        raise error(
            f"{method}({argument!r:.80}) of the handler of {handler.namespace()!r} failed "
            f"({type(failure).__name__}: {failure!s:.120})"
        ) from failure
