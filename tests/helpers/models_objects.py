"""What a program calls or holds that is neither an operator of PyTorch nor a tensor: extensions, objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn, randn
from torch.export import Dim

from .cases import Table, call
from .extensions import to_edge
from .objects import Counter, Factor, foo, queue

EXTENSIONS = Table()


@EXTENSIONS.case(
    lambda rows=4: call(randn(rows, 4)),
    shapes={"x": {0: Dim("rows", min=2)}},
    sizes=({"rows": 9},),
    after=to_edge,
)
def operators_of_an_extension(self: nn.Module, x: Tensor) -> Any:
    values, indices = torch.cat([x.sin(), x]).max(1)
    first, _ = x.split(2, 1)
    return torch.add(x, x, alpha=2), values, indices, first, x.clamp(max=0.5), x.cos()


#: Models that need a permission: to open custom objects, or to print.
OBJECTS = Table()
#: Those of them where PyTorch gives up.
OBJECTS_BEYOND = Table()


def _hold(**objects: Callable[[], Any]) -> Callable[[nn.Module], None]:
    """Gives a module objects as attributes."""

    def parts(module: nn.Module) -> None:
        for name, make in objects.items():
            setattr(module, name, make())

    return parts


_TESTING = torch.ops._TorchScriptTesting
_WIRETESTS = torch.ops.wiretests


@OBJECTS.case(
    lambda rows=2: call(randn(rows, 3)),
    _hold(foo=lambda: foo(10, 20)),
    shapes={"x": {0: Dim("rows", min=2)}},
    sizes=({"rows": 5},),
    pickled=True,
)
def script_object_in_operators(self: nn.Module, x: Tensor) -> Any:
    first, *rest = _TESTING.takes_foo_list_return(self.foo, x)
    return (
        x + _TESTING.takes_foo(self.foo, x),
        first,
        _TESTING.takes_foo_tuple_return(foo=self.foo, x=rest[0]),
    )


@OBJECTS.case(lambda: call(randn(2, 3)), _hold(foo=lambda: foo(1, 2), other=lambda: foo(3, 4)), pickled=True)
def methods_of_script_objects(self: nn.Module, x: Tensor) -> Any:
    return self.foo.add_tensor(x) + self.other.add_tensor(x)


@OBJECTS.case(lambda: call(randn(2, 3), foo(5, 6)), pickled=True)
def script_object_as_input(self: nn.Module, x: Tensor, thing: Any) -> Any:
    return thing.add_tensor(x), _TESTING.takes_foo_tuple_return(thing, x)


@OBJECTS.case(lambda: call(randn(2, 3)), _hold(queue=queue), pickled=True)
def script_object_that_operators_change(self: nn.Module, x: Tensor) -> Any:
    _TESTING.queue_push(self.queue, x.sin())
    return _TESTING.queue_pop(self.queue) + _TESTING.queue_size(self.queue)


@OBJECTS.case(lambda: call(randn(2, 3)), _hold(counter=lambda: Counter(3)), pickled=True)
def opaque_object(self: nn.Module, x: Tensor) -> Any:
    return _WIRETESTS.count(self.counter, x)


@OBJECTS_BEYOND.case(
    lambda: call(randn(2, 3)), _hold(queue=queue), pickled=True, unread="error when deserializing"
)
def script_object_that_methods_change(self: nn.Module, x: Tensor) -> Any:
    self.queue.push(x.sin())
    self.queue.push(x.cos())
    return self.queue.pop() + self.queue.size(), self.queue.pop()


@OBJECTS_BEYOND.case(
    lambda: call(randn(2, 3), foo(5, 6)),
    _hold(foo=lambda: foo(7, 8)),
    after=lambda ep: ep.run_decompositions({}),
    pickled=True,
    unread="Unable to find custom obj",
)
def script_objects_ordered_by_tokens(self: nn.Module, x: Tensor, thing: Any) -> Any:
    return thing.add_tensor(x), self.foo.add_tensor(x), _TESTING.takes_foo(thing, x)


@OBJECTS_BEYOND.case(
    lambda: call(randn(2, 3)),
    _hold(factor=lambda: Factor(3)),
    pickled=True,
    broken="expected a payload for '_custom_obj_0', found none",
    unread="error when deserializing",
)
def opaque_values_as_arguments(self: nn.Module, x: Tensor) -> Any:
    return _WIRETESTS.scale(_WIRETESTS.scale(x, self.factor), Factor(2))


@OBJECTS_BEYOND.case(
    lambda: call(randn(2, 3), Counter(4)), pickled=True, unsaved="Unimplemented graph input type"
)
def opaque_object_as_input(self: nn.Module, x: Tensor, counter: Counter) -> Any:
    return _WIRETESTS.count(counter, x)


@OBJECTS.case(lambda: call(randn(2)), operators=("higher_order.print",))
def prints(self: nn.Module, x: Tensor) -> Any:
    torch._higher_order_ops.print("{} of {:>20} {y:.2f} {z!r}", x, 3, y=1.5, z="q")
    return x + 1


@OBJECTS_BEYOND.case(lambda: call(randn(2, 3), foo(5, 6)), pickled=True, unsaved="Unknown input type")
def script_object_as_output(self: nn.Module, x: Tensor, thing: Any) -> Any:
    return thing, thing.add_tensor(x)


@OBJECTS_BEYOND.case(
    lambda: call(randn(2, 3)),
    _hold(foo=lambda: foo(10, 20)),
    pickled=True,
    unread="error when deserializing",
    broken="expected a payload for '_custom_obj_[0-9]+', found none",
)
def objects_in_regions_and_branches(self: nn.Module, x: Tensor) -> Any:
    with torch.no_grad():
        y = _TESTING.takes_foo(self.foo, x)
    return torch.cond(y.sum() > 0, lambda z: _WIRETESTS.scale(z, Factor(3)), lambda z: z * 1, (y,))
