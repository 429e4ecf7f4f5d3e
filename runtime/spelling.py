"""Tensors, sizes and symbolic expressions as people write them. Needs no torch."""

from __future__ import annotations

from .errors import DeserializeError
from .expression_parser import parse_expression
from .expressions import Apply, Expression, Float, Integer, Rational
from .generated import types
from .layouts import element_type


def describe_tensor(meta: types.TensorMeta, *, device: bool = True) -> str:
    """Dtype, shape and device of a tensor in one line.

    Example:
        >>> from pt2wire.generated import Device, Layout, ScalarType, SymInt, TensorMeta
        >>> sizes = [SymInt.create(as_int=2), SymInt.create(as_int=3)]
        >>> describe_tensor(
        ...     TensorMeta(
        ...         dtype=ScalarType.HALF, sizes=sizes, requires_grad=False, device=Device("cuda", 0),
        ...         strides=sizes, storage_offset=SymInt.create(as_int=0), layout=Layout.Strided,
        ...     )
        ... )
        'float16[2, 3] cuda:0'
    """
    dtype_enum = types.ScalarType if meta.extra_dtype is None else types.ExtraScalarType
    dtype = types.TORCH_NAMES[dtype_enum].get(element_type(meta), "unknown")
    sizes = ", ".join(describe_size(size) for size in meta.sizes)
    text = f"{dtype}[{sizes}]"
    if not device:
        return text
    index = "" if meta.device.index is None else f":{meta.device.index}"
    return f"{text} {meta.device.type}{index}"


def describe_size(size: types.SymInt) -> str:
    """A size or stride as people write it.

    Example:
        >>> describe_size(types.SymInt.create(as_expr=types.SymExpr("Mul(Integer(2), Symbol('s0'))")))
        '2*s0'
    """
    if size.type == "as_int":
        return str(size.as_int)
    try:
        return show_expression(parse_expression(size.as_expr.expr_str))
    except DeserializeError:
        return f"?{size.as_expr.expr_str[:40]}"


# Functions that have an infix spelling, with how tightly it binds.
_INFIX = {
    "Add": (" + ", 1),
    "Mul": ("*", 2),
    "FloorDiv": ("//", 2),
    "CleanDiv": ("//", 2),
    "IntTrueDiv": ("/", 2),
    "FloatTrueDiv": ("/", 2),
    "Mod": ("%", 2),
    "PythonMod": ("%", 2),
    "Pow": ("**", 3),
    "PowByNatural": ("**", 3),
}


def show_expression(expression: Expression, within: int = 0) -> str:
    """An expression as people write it.

    Args:
        expression: The expression.
        within: How tightly the operation around it binds; 0 for none.

    Example:
        >>> show_expression(parse_expression("Mul(Integer(2), Add(Symbol('s0'), Integer(1)))"))
        '2*(s0 + 1)'
    """
    match expression:
        case Integer(value):
            return str(value)
        case Rational(numerator, denominator):
            return f"({numerator}/{denominator})"
        case Float(text):
            return text
        case Apply(function, arguments) if function in _INFIX and len(arguments) > 1:
            sign, binding = _INFIX[function]
            text = sign.join(show_expression(argument, binding) for argument in arguments)
            return f"({text})" if within > binding or within == binding > 1 else text
        case Apply(function, arguments):
            return f"{function}({', '.join(show_expression(argument) for argument in arguments)})"
        case named:
            return named.name
