"""Trees and parts of trees as bytes, to be copied and hashed."""

from __future__ import annotations

from ..errors import SerializeError
from ..generated import CodecError, DepthError, Struct, Union, WidthError, json_codec, thrift_codec, types


def encoded(part: Struct | Union) -> bytes:
    """The Thrift bytes of a tree or a part of one; its JSON where it holds more than Thrift can.

    Raises:
        SerializeError: A value does not fit its field.
    """
    try:
        try:
            return thrift_codec.encode(part)
        except (DepthError, WidthError):
            return json_codec.encode(part)
    except CodecError as error:
        raise SerializeError(error.message, path=error.path) from error


def copied(tree: types.ExportedProgram) -> types.ExportedProgram:
    """A deep copy. Encoding and decoding is twenty times as fast as `copy.deepcopy`, and checks every value.

    Raises:
        SerializeError: A value does not fit its field.
    """
    try:
        try:
            return thrift_codec.decode(types.ExportedProgram, thrift_codec.encode(tree))
        except (DepthError, WidthError):
            return json_codec.decode(types.ExportedProgram, json_codec.encode(tree))
    except CodecError as error:
        raise SerializeError(error.message, path=error.path) from error
