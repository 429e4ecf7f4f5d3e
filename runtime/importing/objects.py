"""Custom objects of a program, which its graphs name, and with which it was traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._library.fake_class_registry import has_fake_class, maybe_to_fake_obj, tracing_with_real
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export.graph_signature import CustomObjArgument

from ..called_with import passed_inputs
from ..errors import DeserializeError
from ..generated import types
from ..objects import object_class


class Objects:
    """The custom objects of a program.

    Args:
        constants: What the program was saved with, by name.
        signature: The program's signature, which says which input is which constant.
        examples: The values of its example inputs, in the order of its inputs.
    """

    def __init__(
        self, constants: Mapping[str, Any], signature: types.GraphSignature, examples: Sequence[Any] = ()
    ) -> None:
        self._constants = constants
        self._examples = {
            spec.user_input.arg.as_custom_obj.name: example
            for spec, example in zip(passed_inputs(signature), examples, strict=False)
            if spec.type == "user_input" and spec.user_input.arg.type == "as_custom_obj"
        }
        self._inputs = {
            spec.custom_obj.arg.name: spec.custom_obj.custom_obj_name
            for spec in signature.input_specs
            if spec.type == "custom_obj"
        }
        self._arguments: set[str] = set()

    def of_argument(self, value: types.CustomObjArgument) -> Any:
        """The object that a node names in its arguments, where no input has that name.

        Raises:
            DeserializeError: There is none, or it is of another class than the program says.
        """
        if value.name not in self._constants:
            raise DeserializeError(
                f"expected the object {value.name[:80]!r} of class {value.class_fqn[:80]} among the "
                "constants, found none"
            )
        self._arguments.add(value.name)
        return self._checked(value.name, value.class_fqn)

    def of_input(self, name: str, value: types.CustomObjArgument, mode: FakeTensorMode) -> Any:
        """What PyTorch keeps of an input that is an object, with a fake of the object where there is one.

        PyTorch puts an object of TorchScript that the program was traced with among its constants, under the
        input's name; of one of an opaque type it keeps the object itself.

        Raises:
            DeserializeError: The object is of another class than the program says, or cannot be faked.
        """
        constant = self._inputs.get(name, name)
        if constant not in self._constants:
            example = self._examples.get(name)
            if not isinstance(example, torch.ScriptObject) and object_class(example) == value.class_fqn:
                return example
            return CustomObjArgument(name=value.name, class_fqn=value.class_fqn)
        found = self._checked(constant, value.class_fqn)
        return CustomObjArgument(name=value.name, class_fqn=value.class_fqn, fake_val=_fake(found, mode))

    def kept(self) -> dict[str, Any]:
        """The program's constants: all but objects that stand in the arguments of nodes."""
        gone = self._arguments - set(self._inputs.values())
        return {name: value for name, value in self._constants.items() if name not in gone}

    def _checked(self, name: str, class_fqn: str) -> Any:
        value = self._constants[name]
        if (found := object_class(value)) != class_fqn:
            raise DeserializeError(
                f"expected an object of class {class_fqn[:80]}, found {name[:80]!r}, which is "
                f"{'none' if found is None else f'one of class {found:.80}'}"
            )
        return value


def _fake(value: Any, mode: FakeTensorMode) -> Any:
    """What stands for an object while a program is traced; None for one of a class without a fake."""
    if isinstance(value, torch.ScriptObject) and (
        tracing_with_real(value) or not has_fake_class(object_class(value))
    ):
        return None
    try:
        return maybe_to_fake_obj(mode, value)
    except Exception as error:  # of the object's own methods
        raise DeserializeError(
            f"cannot make a fake of an object of class {object_class(value)} ({type(error).__name__}: "
            f"{error!s:.120})"
        ) from error
