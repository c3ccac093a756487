"""A SGLang's source cut to what decides the capture.

What cannot be found is left out: the laptop then says that it does not know.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from remote_payload.schema.capture_rule import CaptureRule, SourcePiece
from remote_payload.sglang_bench.installed import DECIDING, forces_draft_tokens

SETTER = "set_eagle3_layers_to_capture"
TOLD = ("layers_to_capture", "_is_layer_to_capture")
READS = "eagle_aux_hidden_state_layer_ids"
LONGEST = 20_000
"""Characters of a piece that are kept."""
MOST_HANDED_ON = 3
READERS = (
    "srt/model_executor/model_runner_components/spec_aux_hidden_state.py",
    "srt/model_executor/model_runner.py",
)
BOUNDARIES = {"srt/layers/layer_boundary/stage.py": "_prepare_attention", "srt/layers/communicator.py": None}
ARGUMENTS = "srt/server_args.py"
FLAGS = {"returns_hidden": "enable_return_hidden_states", "returns_aux": "enable_return_aux_hidden_states"}
OTHERS = ("srt/arg_groups/field_order.py",)
DRAFTER = "srt/models/llama_eagle3.py"
COUNTED = "num_aux_hidden_states"
"""Where the model of a drafter names how many states its fc takes."""
READ = (*READERS, *BOUNDARIES, *DECIDING, *OTHERS, DRAFTER, "version.py", "_version.py")
"""Files below the package that are read beside its models."""


@dataclass(frozen=True, kw_only=True)
class _Class:
    """One class of the models."""

    file: str
    node: ast.ClassDef

    @property
    def bases(self) -> list[str]:
        return [ast.unparse(base).split(".")[-1] for base in self.node.bases]

    def method(self, name: str) -> ast.FunctionDef | None:
        return next((item for item in self.node.body if isinstance(item, ast.FunctionDef) and item.name == name), None)


def rule_from(
    version: str | None, path: str, files: Mapping[str, str | list[str]], target_class: str | None
) -> CaptureRule:
    """The pieces among these files of the package (name below it -> text, or the lines that begin a class)."""
    texts = {name: text for name, text in files.items() if isinstance(text, str)}
    classes = _classes(texts)
    listed = next(
        (name for name, lines in files.items() if isinstance(lines, list) and _names(lines, target_class)), None
    )
    target = classes.get(target_class or "")
    setters = tuple(_setters(target, classes)) if target is not None else ()
    arguments = "".join(texts.get(name, "") for name in (ARGUMENTS, *OTHERS))
    return CaptureRule(
        version=version or _version(texts),
        path=path,
        target_class=target_class,
        found=target.file if target is not None else listed,
        setters=tuple(piece for _, piece in setters),
        forward=_forward(target, setters, classes),
        reader=tuple(_readers(texts)),
        boundary=tuple(_boundaries(texts)),
        returns_hidden=FLAGS["returns_hidden"] in arguments,
        returns_aux=FLAGS["returns_aux"] in arguments,
        forces_draft_tokens=forces_draft_tokens("\n".join(texts.get(name, "") for name in DECIDING)),
        counts_states=COUNTED in texts[DRAFTER] if texts.get(DRAFTER) else None,
    )


def _names(lines: list[str], target_class: str | None) -> bool:
    return target_class is not None and any(re.match(rf"class {re.escape(target_class)}\b", line) for line in lines)


def _classes(texts: Mapping[str, str]) -> dict[str, _Class]:
    found: dict[str, _Class] = {}
    for file, text in texts.items():
        if not file.startswith("srt/models/") or file == DRAFTER:  # a drafter's `LlamaModel` is not its target's
            continue
        for node in _tree(text).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, _Class(file=file, node=node))
    return found


def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last: nested too deep for its parser
        return ast.Module(body=[], type_ignores=[])


def _setters(target: _Class, classes: Mapping[str, _Class]) -> Iterator[tuple[_Class, SourcePiece]]:
    """The target's setter, own or inherited; then those of the parts it calls the same method of.

    Each with the class that has it, or inherits it.
    """
    current: _Class | None = target
    for _ in range(MOST_HANDED_ON):
        if current is None or (owner := _with_method(current, SETTER, classes)) is None:
            return
        method = owner.method(SETTER)
        assert method is not None
        yield current, _piece(owner.file, owner.node.name, method)
        part = _handed_to(method)
        current = None if part is None else _class_of_part(current, part, classes)


def _with_method(start: _Class, name: str, classes: Mapping[str, _Class]) -> _Class | None:
    """The class itself, or the first of its bases, that has the method."""
    todo, seen = [start], set[str]()
    while todo:
        one = todo.pop(0)
        if one.method(name) is not None:
            return one
        seen.add(one.node.name)
        todo += [classes[base] for base in one.bases if base in classes and base not in seen]
    return None


def _handed_to(method: ast.FunctionDef) -> str | None:
    """`language_model` of `self.language_model.set_eagle3_layers_to_capture(...)`; None where nothing is called so."""
    for node in ast.walk(method):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == SETTER:
            return ast.unparse(node.func.value).removeprefix("self.")
    return None


def _class_of_part(owner: _Class, part: str, classes: Mapping[str, _Class]) -> _Class | None:
    """The class that the constructor, own or inherited, makes of `self.PART`; None where it is not one known class."""
    holder = _with_method(owner, "__init__", classes)
    made: set[str] = set()
    for node in ast.walk(holder.node) if holder is not None else ():
        if not isinstance(node, ast.Assign) or f"self.{part}" not in [ast.unparse(target) for target in node.targets]:
            continue
        called = [call.func for call in ast.walk(node.value) if isinstance(call, ast.Call)]
        made |= {name.id for name in called if isinstance(name, ast.Name) and name.id in classes}
    return classes[made.pop()] if len(made) == 1 else None


def _forward(
    target: _Class | None, setters: tuple[tuple[_Class, SourcePiece], ...], classes: Mapping[str, _Class]
) -> SourcePiece | None:
    """The loop that captures: in the part that is told, else the one of its file, or of classes that this builds on."""
    if target is None or not setters:
        return None
    near = [one for one in classes.values() if one.file == setters[-1][0].file]
    part = _told_part(*setters[-1], classes)
    within = [part] if part is not None else [one for one in near if _loops(one)]
    for _ in range(MOST_HANDED_ON):
        if within:
            break
        near = [classes[base] for base in sorted({base for one in near for base in one.bases}) if base in classes]
        within = [one for one in near if _loops(one)]
    if len(within) != 1:
        return None
    method = within[0].method("forward")
    assert method is not None
    told = [item for item in method.body if any(word in ast.unparse(item) for word in TOLD)]
    used = {node.id for item in told for node in ast.walk(item) if isinstance(node, ast.Name)}
    kept = [item for item in method.body if item in told or _counts(item, used)]
    text = "\n".join(ast.unparse(item) for item in kept)
    return SourcePiece(file=within[0].file, owner=within[0].node.name, name="forward", text=text[:LONGEST])


def _told_part(owner: _Class, setter: SourcePiece, classes: Mapping[str, _Class]) -> _Class | None:
    """The class with the loop, of `self.PART` in `self.PART.layers_to_capture = ...`; None where none is known."""
    stored = [
        ast.unparse(node.value)
        for node in ast.walk(_tree(setter.text))
        if isinstance(node, ast.Attribute) and node.attr == TOLD[0] and isinstance(node.ctx, ast.Store)
    ]
    if len(set(stored)) != 1 or not stored[0].startswith("self."):
        return None
    part: _Class | None = owner
    for name in stored[0].split(".")[1:]:
        part = None if part is None else _class_of_part(part, name, classes)
    found = None if part is None else _with_method(part, "forward", classes)
    return found if found is not None and _loops(found) else None


def _counts(item: ast.stmt, used: set[str]) -> bool:
    """Whether a statement gives a number of layers a name that the loop goes by."""
    if not isinstance(item, ast.Assign) or len(item.targets) != 1 or not isinstance(item.targets[0], ast.Name):
        return False
    return item.targets[0].id in used and "layers" in ast.unparse(item.value)


def _loops(one: _Class) -> bool:
    method = one.method("forward")
    return method is not None and any(word in ast.unparse(method) for word in TOLD)


def _readers(texts: Mapping[str, str]) -> Iterator[SourcePiece]:
    """The `try` that reads the ids out of the drafter's config."""
    for file in READERS:
        for node in ast.walk(_tree(texts.get(file, ""))):
            if isinstance(node, ast.Try) and READS in ast.unparse(node):
                yield SourcePiece(file=file, owner=None, name="try", text=ast.unparse(node)[:LONGEST])


def _boundaries(texts: Mapping[str, str]) -> Iterator[SourcePiece]:
    for file, name in BOUNDARIES.items():
        for node in ast.walk(_tree(texts.get(file, ""))):
            if not isinstance(node, ast.FunctionDef):
                continue
            if node.name == name or (name is None and "captured_last_layer_outputs" in ast.unparse(node.args)):
                yield _piece(file, None, node)


def _piece(file: str, owner: str | None, node: ast.FunctionDef) -> SourcePiece:
    return SourcePiece(file=file, owner=owner, name=node.name, text=ast.unparse(node)[:LONGEST])


def _version(texts: Mapping[str, str]) -> str | None:
    for name in ("version.py", "_version.py"):
        found = re.search(r"""^(?:__version__|version)\b.*?["']([^"']+)["']""", texts.get(name, ""), re.MULTILINE)
        if found:
            return found[1]
    return None
