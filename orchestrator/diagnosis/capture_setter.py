"""What `set_eagle3_layers_to_capture` of a SGLang makes of a drafter's ids: its lines followed, none of them run.

Only the few shapes that SGLang's models are written in are followed; any other raises `UnknownShapeError`.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.diagnosis.source_terms import Scope, UnknownShapeError, numbers, odd, unknown, worth
from remote_payload.schema.capture_rule import SourcePiece

SETTER = "set_eagle3_layers_to_capture"
RESULT = "layers_to_capture"
MARK = "_is_layer_to_capture"
HARMLESS = "capture_aux_hidden_states"
LARGEST = 10**6
"""Ids and layers beyond it are nobody's."""


class ServerEndsError(Exception):
    """By the source, a server with these ids ends while it starts; the message says of what."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """The layers that the model is told to capture at."""

    layers: tuple[int, ...]
    reasoning: tuple[str, ...]
    guarded: bool
    """Whether only the last pipeline stage is told."""


@dataclass
class _Walk(Scope):
    """One setter being followed."""

    guarded: bool = False
    found: list[int] | None = None
    handed: bool = False


def told_by(setters: Sequence[SourcePiece], ids: list[int] | None, layers: int) -> Told:
    """Follow the setters with the drafter's ids (None = none) on a target of so many layers.

    Raises UnknownShapeError, ServerEndsError.
    """
    if any(abs(item) > LARGEST for item in (*(ids or ()), layers)):
        raise UnknownShapeError(f"ids and layers must stay below {LARGEST}")
    walk = _Walk(pieces=setters, layers=layers)
    _follow(walk, ids)
    if walk.found is None:
        raise unknown(setters[-1], "it does not say which layers")
    where = " -> ".join(f"{piece.owner} ({piece.file})" for piece in setters)
    given = "without ids" if ids is None else f"with ids {ids}"
    return Told(
        layers=tuple(walk.found),
        reasoning=(f"{where}: {_worded(ids, walk.found)}, so {given} it captures before layers {walk.found}",),
        guarded=walk.guarded,
    )


def _worded(ids: list[int] | None, found: list[int]) -> str:
    if ids is None:
        return "its defaults"
    if found == [item + 1 for item in ids]:
        return "id + 1"
    return "ids as they are" if found == ids else "a rule of its own"


def _follow(walk: _Walk, value: object) -> None:
    piece = walk.pieces[walk.at]
    try:
        function = ast.parse(piece.text).body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError):
        raise unknown(piece, "it is no Python") from None
    if not isinstance(function, ast.FunctionDef):
        raise unknown(piece, "it is no function")
    parameters = [argument.arg for argument in function.args.args[1:]]
    if len(parameters) > 1 or (not parameters and value is not None):
        raise unknown(piece, "it takes other arguments")
    walk.names = dict.fromkeys(parameters, value)
    _block(walk, function.body)


def _block(walk: _Walk, body: Sequence[ast.stmt]) -> bool:
    """Follow statements; whether one of them returned."""
    for line in body:
        if isinstance(line, ast.Return):
            return True
        if isinstance(line, ast.If):
            chosen = line.body if _is_so(walk, line.test) else line.orelse
            if _block(walk, chosen):
                return True
        elif isinstance(line, ast.Assign | ast.AnnAssign):
            _assign(walk, line)
        elif isinstance(line, ast.For):
            _mark(walk, line)
        elif isinstance(line, ast.Expr) and not isinstance(line.value, ast.Constant):
            _call(walk, line.value)
            if walk.handed:
                return True
        elif not isinstance(line, ast.Expr | ast.Pass):
            raise odd(walk, line)
    return False


def _assign(walk: _Walk, line: ast.Assign | ast.AnnAssign) -> None:
    targets = line.targets if isinstance(line, ast.Assign) else [line.target]
    if len(targets) != 1 or line.value is None:
        raise odd(walk, line)
    target = targets[0]
    if isinstance(target, ast.Name):
        walk.names[target.id] = worth(walk, line.value)
    elif isinstance(target, ast.Attribute) and target.attr == RESULT:
        walk.found = numbers(walk, worth(walk, line.value), line)
    elif not (isinstance(target, ast.Attribute) and target.attr == HARMLESS):
        raise odd(walk, line)


def _call(walk: _Walk, call: ast.expr) -> None:
    """Handing the list on to a part of the model."""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == SETTER):
        raise odd(walk, call)
    if len(call.args) != 1 or call.keywords:
        raise odd(walk, call)
    value = worth(walk, call.args[0])
    if walk.at + 1 >= len(walk.pieces):
        raise unknown(walk.pieces[walk.at], f"what {ast.unparse(call.func)} does was not found")
    walk.at += 1
    _follow(walk, value)
    walk.handed = True


def _mark(walk: _Walk, line: ast.For) -> None:
    """`for layer_id in self.layers_to_capture: setattr(self.layers[layer_id], MARK, True)`, with or without a bound."""
    body = line.body[0] if len(line.body) == 1 else line
    bounded = isinstance(body, ast.If) and ast.unparse(body.test).startswith("0 <= layer_id < len(")
    if isinstance(body, ast.If) and bounded and len(body.body) == 1 and not body.orelse:
        body = body.body[0]
    over = isinstance(line.iter, ast.Attribute) and line.iter.attr == RESULT
    if not over or MARK not in ast.unparse(body) or not isinstance(body, ast.Expr) or walk.found is None:
        raise odd(walk, line)
    if bounded:
        return
    outside = [item for item in walk.found if not -walk.layers <= item < walk.layers]
    if outside:
        raise ServerEndsError(
            f"there is no layer {outside[0]} to mark: the server ends at its start with an IndexError"
        )
    walk.found = [item % walk.layers for item in walk.found]  # Python counts from the end below 0


def _is_so(walk: _Walk, test: ast.expr) -> bool:
    text = ast.unparse(test)
    if text.endswith(".is_last_rank") and text.startswith("not "):
        walk.guarded = True
        return False
    return bool(worth(walk, test))
