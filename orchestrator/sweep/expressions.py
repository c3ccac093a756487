"""The small language of a sweep file's conditions and derived values: numbers, words, names, and nothing that acts.

`num_steps + 1`, `eagle_topk == 1 and num_draft_tokens <= 16`, `min(num_steps, 4)`, `dtype in ["auto", "bfloat16"]`.
Names are settings of the job. No attributes, no subscripts, no calls but `min`, `max` and `abs`, no powers.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.errors import JobFileError

LONGEST = 400
"""Characters of one expression."""
DEEPEST = 50
"""Levels of parentheses, signs and operators within each other."""
IMPLIES = (
    'an implication is a derived value, [[sweep.derive]] set = "num_draft_tokens", to = "num_steps + 1", when = '
    '"eagle_topk == 1"; or a constraint, require = "eagle_topk != 1 or num_draft_tokens == num_steps + 1"'
)
_NUMERIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_CALLED: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}


class Expression:
    """One expression, read once and worked out for many points."""

    def __init__(self, text: str, where: str) -> None:
        """`where`: the file and key, for messages. Raises JobFileError."""
        self.text, self._where = text, where
        if len(text) > LONGEST:
            raise JobFileError(f"{where}: expected an expression of at most {LONGEST} characters, found: {len(text)}")
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            said = error.msg if isinstance(error, SyntaxError) else str(error)
            hint = IMPLIES if "->" in text or "=>" in text else None
            raise JobFileError(f"{where}: not an expression ({said}): {text!r}", hint=hint) from None
        if _depth(self._tree) > DEEPEST:
            raise JobFileError(f"{where}: expected an expression of at most {DEEPEST} levels, found more: {text!r}")
        for node in ast.walk(self._tree):
            self._require_allowed(node)

    @property
    def names(self) -> tuple[str, ...]:
        """The settings that it speaks of."""
        found = (node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name))
        return tuple(dict.fromkeys(name for name in found if name not in _CALLED))

    def value(self, settings: Mapping[str, object]) -> Any:
        """Worked out. Raises JobFileError where a name is no setting, or the values do not go together."""
        try:
            return self._worked_out(self._tree, settings)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            told = ", ".join(f"{name} = {settings.get(name)!r}" for name in self.names)
            raise JobFileError(f"{self._where}: `{self.text}` cannot be worked out with {told}: {error}") from None

    def _require_allowed(self, node: ast.AST) -> None:
        allowed = (
            ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, *_NUMERIC, ast.Compare, *_COMPARED,
            ast.IfExp, ast.Name, ast.Load, ast.List, ast.Tuple, ast.Call,
        )  # fmt: skip
        if isinstance(node, ast.Constant):
            is_plain = node.value is None or isinstance(node.value, bool | int | float | str)
        elif isinstance(node, ast.Call):
            is_plain = isinstance(node.func, ast.Name) and node.func.id in _CALLED and not node.keywords
        else:
            is_plain = isinstance(node, allowed)
        if not is_plain:
            raise JobFileError(
                f"{self._where}: expressions have numbers, words, settings, + - * / // %, comparisons, and, or, not, "
                f"if-else, min, max and abs; found: {ast.unparse(node) or type(node).__name__!r} in {self.text!r}"
            )

    def _worked_out(self, node: ast.AST, settings: Mapping[str, object]) -> Any:
        def of(inner: ast.AST) -> Any:
            return self._worked_out(inner, settings)

        if isinstance(node, ast.Name):
            return self._setting(node.id, settings)
        if isinstance(node, ast.List | ast.Tuple):
            return [of(item) for item in node.elts]
        if isinstance(node, ast.BoolOp | ast.IfExp | ast.Compare):
            return _logic(node, of)
        return _arithmetic(node, of)

    def _setting(self, name: str, settings: Mapping[str, object]) -> object:
        if name not in settings:
            raise JobFileError(f"{self._where}: `{name}` in `{self.text}` is no setting of the job")
        return settings[name]


def _depth(tree: ast.AST) -> int:
    """Levels of nodes, counted without recursion."""
    level, depth = [tree], 0
    while level:
        level, depth = [inner for node in level for inner in ast.iter_child_nodes(node)], depth + 1
    return depth


def _logic(node: ast.BoolOp | ast.IfExp | ast.Compare, of: Callable[[ast.AST], Any]) -> Any:
    if isinstance(node, ast.IfExp):
        return of(node.body) if of(node.test) else of(node.orelse)
    if isinstance(node, ast.BoolOp):
        together = all if isinstance(node.op, ast.And) else any
        return together(of(item) for item in node.values)
    left = of(node.left)
    for compared, item in zip(node.ops, node.comparators, strict=True):
        right = of(item)
        if not _COMPARED[type(compared)](left, right):
            return False
        left = right
    return True


def _arithmetic(node: ast.AST, of: Callable[[ast.AST], Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.UnaryOp():
            return not of(node.operand) if isinstance(node.op, ast.Not) else -_number(of(node.operand))
        case ast.BinOp():
            return _NUMERIC[type(node.op)](_number(of(node.left)), _number(of(node.right)))
        case ast.Call(func=ast.Name(id=name)):
            return _CALLED[name](*(_number(of(item)) for item in node.args))
    raise AssertionError(f"not ruled out before: {ast.dump(node)}")


def _number(value: object) -> Any:
    """Booleans are numbers to Python, and never meant as such here."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, found: {value!r}")
    return value
