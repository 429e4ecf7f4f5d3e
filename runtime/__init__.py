"""Schema-first serializer for exported PyTorch programs; see `save` and `load`.

Everything below is imported when it is first used: reading archives as data (`read`, `from_json`, `validate`)
needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .archive.payloads import Payload
    from .archives import Archive, read, write
    from .artifacts import SerializedArtifact, deserialize, serialize
    from .comparing import Difference, canonicalize, diff, digest
    from .errors import DeserializeError, Pt2WireError, SerializeError, UnsafeArtifactError
    from .exporting.extern_kernels import export_extern_kernels
    from .extensions import ExtensionHandler, register_extension
    from .findings import Finding
    from .generated.types import SCHEMA_VERSION
    from .limits import Limits
    from .program_trees import from_tree, to_tree
    from .programs import load, load_all, save
    from .trees import from_json, from_thrift, to_json, to_thrift
    from .validation import validate
    from .version import __version__

# Name -> module that defines it.
_EXPORTS: dict[str, str] = {
    "Archive": "archives",
    "DeserializeError": "errors",
    "Difference": "comparing",
    "ExtensionHandler": "extensions",
    "Finding": "findings",
    "Limits": "limits",
    "Payload": "archive.payloads",
    "Pt2WireError": "errors",
    "SCHEMA_VERSION": "generated.types",
    "SerializeError": "errors",
    "SerializedArtifact": "artifacts",
    "UnsafeArtifactError": "errors",
    "__version__": "version",
    "canonicalize": "comparing",
    "deserialize": "artifacts",
    "diff": "comparing",
    "digest": "comparing",
    "export_extern_kernels": "exporting.extern_kernels",
    "from_json": "trees",
    "from_thrift": "trees",
    "from_tree": "program_trees",
    "load": "programs",
    "load_all": "programs",
    "read": "archives",
    "register_extension": "extensions",
    "save": "programs",
    "serialize": "artifacts",
    "to_json": "trees",
    "to_thrift": "trees",
    "to_tree": "program_trees",
    "validate": "validation",
    "write": "archives",
}

__all__ = [
    "SCHEMA_VERSION",
    "Archive",
    "DeserializeError",
    "Difference",
    "ExtensionHandler",
    "Finding",
    "Limits",
    "Payload",
    "Pt2WireError",
    "SerializeError",
    "SerializedArtifact",
    "UnsafeArtifactError",
    "__version__",
    "canonicalize",
    "deserialize",
    "diff",
    "digest",
    "export_extern_kernels",
    "from_json",
    "from_thrift",
    "from_tree",
    "load",
    "load_all",
    "read",
    "register_extension",
    "save",
    "serialize",
    "to_json",
    "to_thrift",
    "to_tree",
    "validate",
    "write",
]


if not TYPE_CHECKING:  # type checkers would take any misspelt name for one that this finds

    def __getattr__(name: str) -> object:
        if name not in _EXPORTS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            value = getattr(importlib.import_module(f".{_EXPORTS[name]}", __name__), name)
        except ModuleNotFoundError as error:
            if error.name not in ("torch", "sympy"):
                raise
            raise ModuleNotFoundError(
                f"pt2wire.{name} makes or takes programs of PyTorch, and {error.name} is not installed. "
                "Without it programs are data: read, write, validate, diff, from_json and from_thrift work. "
                "Install torch for the rest",
                name=error.name,
            ) from error
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
