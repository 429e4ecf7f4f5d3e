"""Names of the records in a PT2 archive: PyTorch's, and those that pt2wire adds under `thrift/`."""

from __future__ import annotations

ROOT = "archive"

ARCHIVE_FORMAT = "archive_format"
ARCHIVE_VERSION = "archive_version"
BYTEORDER = "byteorder"
CONTAINER_VERSION = ".data/version"
CONTAINER_ID = ".data/serialization_id"

MODELS = "models/"
WEIGHTS = "data/weights/"
CONSTANTS = "data/constants/"
SAMPLE_INPUTS = "data/sample_inputs/"
EXTRA = "extra/"
THRIFT = "thrift/"
INDEX = "thrift/index.compact"

WEIGHT_PREFIX = "weight_"
TENSOR_PREFIX = "tensor_"
#: PyTorch tells by these how an object was pickled: by TorchScript, or by Python.
SCRIPT_OBJECT_PREFIX = "custom_obj_"
OPAQUE_OBJECT_PREFIX = "opaque_obj_"
OBJECT_PREFIXES = (SCRIPT_OBJECT_PREFIX, OPAQUE_OBJECT_PREFIX)

# What every archive holds beside its programs.
FIXED_CONTENT: dict[str, bytes] = {
    ARCHIVE_FORMAT: b"pt2",
    ARCHIVE_VERSION: b"0",
    CONTAINER_VERSION: b"6\n",
    BYTEORDER: b"little",
}

#: Bytes to which the content of a stored record is aligned within the file.
ALIGNMENT = 64


def program_json(name: str) -> str:
    """A program's tree as PyTorch's JSON."""
    return f"{MODELS}{name}.json"


def program_thrift(name: str) -> str:
    """The same in Thrift."""
    return f"{THRIFT}{name}.compact"


def weights_json(name: str) -> str:
    """The config of a program's weights: which lies in which payload."""
    return f"{WEIGHTS}{name}_weights_config.json"


def weights_thrift(name: str) -> str:
    """The same in Thrift."""
    return f"{THRIFT}{name}_weights.compact"


def constants_json(name: str) -> str:
    """The config of a program's constants."""
    return f"{CONSTANTS}{name}_constants_config.json"


def constants_thrift(name: str) -> str:
    """The same in Thrift."""
    return f"{THRIFT}{name}_constants.compact"


def sample_inputs(name: str) -> str:
    """A program's example inputs as PyTorch pickles them."""
    return f"{SAMPLE_INPUTS}{name}.pt"


def flat_inputs(name: str) -> str:
    """Their leaves alone, where the pickle cannot be opened without running code."""
    return f"{THRIFT}{name}_inputs.pt"


def legacy_weights(name: str) -> str:
    """Weights as one pickle: written by torch 2.7 and 2.8, not read by pt2wire."""
    return f"{WEIGHTS}{name}.pt"


def program_names(records: list[str]) -> list[str]:
    """The programs that an archive with these records holds, in the records' order.

    Example:
        >>> program_names(["models/a.json", "thrift/b.compact", "thrift/b_weights.compact", "extra/x"])
        ['a', 'b']
    """
    names = dict.fromkeys(
        r[len(MODELS) : -len(".json")] for r in records if r.startswith(MODELS) and r.endswith(".json")
    )
    present = set(records)
    for record in records:
        if record.startswith(THRIFT) and record.endswith(".compact"):
            name = record[len(THRIFT) : -len(".compact")]
            if weights_thrift(name) in present:
                names.setdefault(name)
    return list(names)
