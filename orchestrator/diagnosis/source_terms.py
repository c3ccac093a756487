"""What an expression of a SGLang's source is worth, where it is of the few shapes that its setters are written in."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from remote_payload.schema.capture_rule import SourcePiece


class UnknownShapeError(Exception):
    """A piece of the source is of a shape that is not known here; the message says which."""


@dataclass
class Scope:
    """Where an expression stands: which setter of those that hand on to each other, and what its names are worth."""

    pieces: Sequence[SourcePiece]
    layers: int
    """Of the target."""
    at: int = 0
    names: dict[str, object] = field(default_factory=dict)


def worth(scope: Scope, node: ast.expr) -> object:
    """What an expression is worth. Raises UnknownShapeError."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in scope.names:
        return scope.names[node.id]
    for shape, of_shape in _SHAPES.items():
        if isinstance(node, shape):
            return of_shape(scope, node)
    raise odd(scope, node)


def _attribute(scope: Scope, node: ast.Attribute) -> object:
    if node.attr == "num_hidden_layers":
        return scope.layers
    if ast.unparse(node).startswith("self."):
        return _Part()
    raise odd(scope, node)


def _sign(scope: Scope, node: ast.UnaryOp) -> object:
    if isinstance(node.op, ast.Not):
        return not worth(scope, node.operand)
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return ast.literal_eval(node)
    raise odd(scope, node)


def _item(scope: Scope, node: ast.Subscript) -> object:
    listed, place = worth(scope, node.value), node.slice.value if isinstance(node.slice, ast.Constant) else None
    if isinstance(listed, list) and type(place) is int and -len(listed) <= place < len(listed):
        return listed[place]
    raise odd(scope, node)


def _listed(scope: Scope, node: ast.List) -> object:
    return [worth(scope, item) for item in node.elts]


class _Part:
    """Something of the model, of which only that it is there is known."""


def _arithmetic(scope: Scope, node: ast.BinOp) -> int:
    left, right = worth(scope, node.left), worth(scope, node.right)
    if type(left) is int and type(right) is int:
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv) and right:
            return left // right
    raise odd(scope, node)


def _each(scope: Scope, node: ast.ListComp) -> list[object]:
    if len(node.generators) != 1 or node.generators[0].ifs or not isinstance(node.generators[0].target, ast.Name):
        raise odd(scope, node)
    name, listed = node.generators[0].target.id, worth(scope, node.generators[0].iter)
    if not isinstance(listed, list):
        raise odd(scope, node)
    kept, found = dict(scope.names), []
    for item in listed:
        scope.names[name] = item
        found.append(worth(scope, node.elt))
    scope.names = kept
    return found


def _logic(scope: Scope, node: ast.BoolOp) -> object:
    value: object = None
    for part in node.values:
        value = worth(scope, part)
        if bool(value) is isinstance(node.op, ast.Or):
            break
    return value


def _compared(scope: Scope, node: ast.Compare) -> bool:
    left, right = worth(scope, node.left), worth(scope, node.comparators[0])
    operator = node.ops[0] if len(node.ops) == 1 else None
    if isinstance(operator, ast.Is | ast.IsNot) and right is None:
        return (left is None) is isinstance(operator, ast.Is)
    if isinstance(operator, ast.Eq | ast.NotEq) and type(left) is int and type(right) is int:
        return (left == right) is isinstance(operator, ast.Eq)
    raise odd(scope, node)


def _built_in(scope: Scope, node: ast.Call) -> object:
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name == "hasattr" and len(node.args) == 2:
        return scope.at + 1 < len(scope.pieces)
    if name == "len" and len(node.args) == 1 and ast.unparse(node.args[0]).endswith(".layers"):
        return scope.layers
    if name in ("list", "max", "min", "sorted") and len(node.args) == 1 and not node.keywords:
        listed = numbers(scope, worth(scope, node.args[0]), node)
        if listed or name in ("list", "sorted"):
            return {
                "list": listed,
                "max": max(listed, default=0),
                "min": min(listed, default=0),
                "sorted": sorted(listed),
            }[name]
    raise odd(scope, node)


_SHAPES: dict[type[ast.expr], Callable[[Scope, Any], object]] = {
    ast.Attribute: _attribute,
    ast.List: _listed,
    ast.BinOp: _arithmetic,
    ast.ListComp: _each,
    ast.BoolOp: _logic,
    ast.UnaryOp: _sign,
    ast.Compare: _compared,
    ast.Subscript: _item,
    ast.Call: _built_in,
}


def numbers(scope: Scope, value: object, node: ast.AST) -> list[int]:
    """The value as a list of whole numbers. Raises UnknownShapeError naming `node`."""
    if isinstance(value, list) and all(type(item) is int for item in value):
        return value
    raise odd(scope, node)


def odd(scope: Scope, node: ast.AST) -> UnknownShapeError:
    """The error for one expression or statement."""
    return unknown(scope.pieces[scope.at], f"`{ast.unparse(node).splitlines()[0][:120]}`")


def unknown(piece: SourcePiece, what: str) -> UnknownShapeError:
    """The error for a piece as a whole."""
    return UnknownShapeError(f"{piece.owner}.{piece.name} in {piece.file} is of a shape that is not known here: {what}")
