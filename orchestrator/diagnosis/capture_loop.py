"""What the layer loop of a SGLang's model can capture of what it was told: the embedding output, the last layer's."""

import ast
import re
from dataclasses import dataclass

from orchestrator.diagnosis.capture_setter import MARK, RESULT
from orchestrator.diagnosis.source_terms import UnknownShapeError
from remote_payload.schema.capture_rule import CaptureRule, SourcePiece

SUM = "hidden_states + residual"
ENTRY = ("captured_last_layer_outputs", "capture_output")
"""Keywords by which a layer is handed what takes the state at its entry."""
RANGES = re.compile(
    r"range\((?:self\.start_layer, self\.end_layer|normal_start_layer, normal_end_layer|len\(self\.layers\)|"
    r"self\.config\.num_hidden_layers)\)"
)
ENUMERATED = re.compile(r"enumerate\(self\.layers(?:\[self\.start_layer:self\.end_layer\])?\)")


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What the loop meets."""

    embedding: bool | None
    """Whether the state before layer 0 can be taken; False: the server fails on it; None: not told."""
    meets_end: bool
    """Whether the last layer's output is looked at as well."""
    reasoning: tuple[str, ...]


def loop_of(rule: CaptureRule) -> Loop:
    """Judge the loop's pieces. Raises UnknownShapeError where the layers are not counted in a way that is known."""
    piece = rule.forward
    if piece is None:
        raise UnknownShapeError("the loop over the layers, which captures, was not found in this source")
    tree = _tree(piece)
    _check_counting(piece, tree)
    text = piece.text
    meets_end = any(f"{name} in self.{RESULT}" in text for name in _ends(tree))
    embedding, how = _embedding(rule, text)
    where = f"{piece.owner} ({piece.file})"
    end = "and the last layer's output" if meets_end else "the last layer's output is not among them"
    return Loop(
        embedding=embedding,
        meets_end=meets_end,
        reasoning=(f"{where} takes a state as its layer begins, 0 to n - 1, {end}; {how}",),
    )


def _check_counting(piece: SourcePiece, tree: ast.Module) -> None:
    """Layers must be counted from 0 on, and each be asked about by its own number, or by a mark on it."""
    numbers = {
        ast.unparse(node.left)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.In)
        and ast.unparse(node.comparators[0]) == f"self.{RESULT}"
    } - _ends(tree)
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    marked = MARK in piece.text
    counted = {name for loop in loops for name in _counted(loop, _ends(tree))}
    if (not numbers and not marked) or not numbers <= counted or (marked and not loops):
        raise UnknownShapeError(f"{piece.owner}.forward in {piece.file} counts its layers in a way not known here")


def _ends(tree: ast.Module) -> set[str]:
    """What stands for the number behind the last layer's: the model's own, or a name for how many it has."""
    named = {
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and ast.unparse(node.value) in ("len(self.layers)", "self.config.num_hidden_layers")
    }
    assigned = [name.id for name in ast.walk(tree) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)]
    return {"self.end_layer", *(name for name in named if assigned.count(name) == 1)}


def _counted(loop: ast.For, ends: set[str]) -> list[str]:
    """The variable that is a layer's number in this loop."""
    over = ast.unparse(loop.iter)
    if isinstance(loop.target, ast.Name) and (RANGES.fullmatch(over) or over in {f"range({end})" for end in ends}):
        return [loop.target.id]
    if isinstance(loop.target, ast.Tuple) and ENUMERATED.fullmatch(over):
        name = ast.unparse(loop.target.elts[0])
        text = ast.unparse(loop)
        shifted = f"{name} = {name} + self.start_layer" in text or f"{name} += self.start_layer" in text
        return [name] if shifted or "start_layer" not in over else []
    return []


def _embedding(rule: CaptureRule, text: str) -> tuple[bool | None, str]:
    if SUM in text and not any(f"{word}=" in text.replace(" = ", "=") for word in ENTRY):
        if "residual is not None" in text or "residual is None" in text:
            return True, "where there is no residual yet it takes the embedding output"
        return False, "it adds a residual that is not there before layer 0"
    if any(f"{word}=" in text.replace(" = ", "=") for word in ENTRY):
        return _by_boundary(rule)
    if "residual" not in text and _takes(text) == {"hidden_states"}:
        return True, "no residual stands beside what it takes: before layer 0 that is the embedding output"
    return None, "how it takes a state is not known here"


def _takes(text: str) -> set[str]:
    """What is appended to the captured states, anywhere."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and len(node.args) == 1]
    appends = [call for call in calls if ast.unparse(call.func) == "aux_hidden_states.append"]
    return {ast.unparse(call.args[0]) for call in appends}


def _by_boundary(rule: CaptureRule) -> tuple[bool | None, str]:
    """What a layer's entry does with it: the sum is made first, so before layer 0 it is the embedding output."""
    for piece in rule.boundary:
        sums_first = "hidden_states, residual = self.prepare_attn(" in piece.text
        if sums_first or "capture_before_read" in piece.text or "capture_gathered.capture(" in piece.text:
            return True, f"before layer 0 that is the embedding output ({piece.name}, {piece.file})"
    return None, "what a layer's entry does with it was not found"


def _tree(piece: SourcePiece) -> ast.Module:
    try:
        return ast.parse(piece.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UnknownShapeError(f"{piece.owner}.forward in {piece.file} was not kept whole") from None
