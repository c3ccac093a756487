"""The rules of the house that a machine can keep: who imports whom, who prints, who may catch everything."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAPTOP = sorted((ROOT / "orchestrator").rglob("*.py"))
PAYLOAD = sorted((ROOT / "remote_payload").rglob("*.py"))
PEER_OF_THE_CAPTURE_CHECK = ROOT / "remote_payload" / "standalone" / "capture" / "fresh.py"
"""Runs the target with transformers where the host has it; what it cannot import it tells, and the job goes on."""


def import_nodes(path: Path) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import of a file that happens when it runs, at any depth of the code."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node not in for_types:
            yield node


def imports(path: Path) -> Iterator[str]:
    """Every module a file imports, as dotted names; what is taken from a module may be one, and is among them."""
    for node in import_nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert node.level == 0, f"{path}: relative imports hide the room they reach into"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(path: Path) -> str:
    """`orchestrator/remote/link.py` -> `remote`, `orchestrator/pipeline.py` -> `pipeline`."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if len(parts) > 2 else Path(parts[1]).stem


def offenders(paths: list[Path], packages: tuple[str, ...], allowed: set[str]) -> list[str]:
    """Files outside `allowed` rooms that import one of `packages`."""
    return [
        f"{path.relative_to(ROOT)}: {name}"
        for path in paths
        if room(path) not in allowed
        for name in set(imports(path))
        if name.split(".")[0] in packages
    ]


@pytest.mark.parametrize(
    ("packages", "allowed"),
    [
        (("fabric", "paramiko", "invoke"), {"remote"}),
        (("click", "rich"), {"cli"}),
        (("pydantic",), {"records", "config"}),
        (("asyncssh",), {"demo"}),
        (("jinja2", "matplotlib"), {"report"}),
        (("torch", "safetensors"), set()),
    ],
)
def test_only_their_own_room_imports_them(packages: tuple[str, ...], allowed: set[str]) -> None:
    assert offenders(LAPTOP, packages, allowed) == []


def test_orchestrator_takes_schema_and_rundir_alone() -> None:
    allowed = re.compile(r"remote_payload\.(schema|rundir)(\.|$)|remote_payload$")
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in LAPTOP
        for name in imports(path)
        if name.startswith("remote_payload") and not allowed.match(name)
    ]
    assert found == []


def test_the_payload_takes_nothing_from_the_laptop_nor_from_elsewhere() -> None:
    import sys  # noqa: PLC0415

    for path in PAYLOAD:
        for name in imports(path):
            top = name.split(".")[0]
            ours = top == "remote_payload"
            torch = top in {"torch", "safetensors"}
            if top == "transformers" and path == PEER_OF_THE_CAPTURE_CHECK:
                continue
            assert ours or top in sys.stdlib_module_names or torch, f"{path.relative_to(ROOT)} imports {name}"
            if torch:
                assert room(path) == "standalone", f"{path.relative_to(ROOT)}: only standalone/ may need {top}"


# Which rooms a room may import; the arrows of the house.
ARROWS = {
    "cli": {"pipeline", "compare", "diagnosis", "report", "store", "records", "config", "jobfile", "updates", "errors",
            "split_files",
            "outcome", "review", "reporting", "promotion", "published", "measurements", "operands", "expectations",
            "demo", "importers", "measured_files", "result_files", "sweeping", "estimating", "sweep", "waiting",
            "diagnosing", "scheduling", "notifying", "housekeeping", "cli", "sweep_groups", "several_hosts"},
    "review": {"compare", "report", "store", "records", "errors"},
    "measurements": {"review", "importers", "compare", "diagnosis", "report", "store", "records", "errors"},
    "reporting": {"review", "measurements", "operands", "compare", "report", "store", "records", "errors"},
    "published": {"compare", "records", "errors"},
    "promotion": {"measurements", "compare", "store", "records", "errors"},
    "measured_files": {"result_files", "measurements", "importers", "store", "records", "errors"},
    "result_files": {"importers", "store", "records", "errors"},
    "operands": {"measured_files", "measurements", "published", "compare", "importers", "store", "records", "errors"},
    "expectations": {"measurements", "operands", "compare", "store", "config", "jobfile", "records", "errors"},
    "diagnosing": {"diagnosing", "diagnosis", "compare", "report", "review", "pipeline", "following", "order",
                   "operands", "jobfile", "outcome", "sweep", "remote", "store", "records", "config", "updates",
                   "flags", "errors"},
    "pipeline": {"order", "following", "remote", "store", "records", "config", "updates", "errors"},
    "waiting": {"jobfile", "errors"},
    "notifying": {"config", "store", "records", "errors"},
    "scheduling": {"pipeline", "order", "following", "sweeping", "remote", "store", "records", "errors"},
    "housekeeping": {"following", "remote", "store", "records", "errors"},
    "sweeping": {"sweeping", "pipeline", "order", "following", "jobfile", "measurements", "review", "report", "compare",
                 "sweep", "remote", "store", "records", "config", "updates", "errors"},
    "sweep_groups": {"sweep_groups", "several_hosts", "sweeping", "pipeline", "order", "waiting", "outcome",
                     "following", "jobfile", "report", "sweep", "remote", "store", "records", "config", "updates",
                     "errors"},
    "several_hosts": {"following", "remote", "updates", "errors"},
    "estimating": {"store", "sweep", "errors"},
    "sweep": {"sweep", "compare", "jobfile", "secret_settings", "config", "records", "errors"},
    "order": {"jobfile", "secret_settings", "remote", "records", "config", "errors"},
    "following": {"remote", "store", "records", "updates", "errors"},
    "remote": {"remote", "records", "config", "updates", "errors"},
    "store": {"store", "records", "errors"},
    "jobfile": {"config", "errors", "flags", "secret_settings", "split_files"},
    "split_files": {"errors"},
    "flags": set(),
    "secret_settings": {"errors", "flags"},
    "config": {"config", "errors"},
    "records": {"records", "errors"},
    "importers": {"importers", "compare", "records", "errors"},
    "outcome": {"errors", "flags"},
    "updates": set(),
    "errors": set(),
    "compare": {"compare", "records", "errors"},
    "diagnosis": {"diagnosis", "compare", "records", "errors"},
    "report": {"flags", "report", "compare", "sweep", "diagnosis", "records", "errors", "outcome"},
    "demo": {"demo", "errors"},
}  # fmt: skip


def test_arrows_point_one_way() -> None:
    for path in LAPTOP:
        here = room(path)
        if here == "__init__":
            continue
        assert here in ARROWS, f"{path.relative_to(ROOT)}: which room is this? add it to DESIGN and ARROWS"
        for name in imports(path):
            parts = name.split(".")
            if parts[0] != "orchestrator" or len(parts) == 1 or parts[1] == "__version__":
                continue
            assert parts[1] in ARROWS[here], f"{path.relative_to(ROOT)} ({here}) imports {name}"


def module_name(path: Path) -> str:
    """`orchestrator/remote/__init__.py` -> `orchestrator.remote`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def circles(paths: list[Path]) -> dict[str, list[str]]:
    """The modules that import each other in circles, or stand between two of those, each with which of them it has."""
    names = {module_name(path) for path in paths}
    left: dict[str, set[str]] = {}
    for path in paths:
        taken = {
            whole if (whole := f"{node.module}.{alias.name}") in names else node.module or ""
            for node in import_nodes(path)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        taken |= {alias.name for node in import_nodes(path) if isinstance(node, ast.Import) for alias in node.names}
        left[module_name(path)] = (taken & names) - {module_name(path)}
    before = 0
    while before != len(left):  # what imports none of them, or is imported by none, is in no circle
        before, wanted = len(left), set().union(*left.values())
        left = {name: found & left.keys() for name, found in left.items() if found & left.keys() and name in wanted}
    return {name: sorted(found) for name, found in left.items()}


@pytest.mark.parametrize("package", [LAPTOP, PAYLOAD], ids=["laptop", "payload"])
def test_no_circles(package: list[Path]) -> None:
    """An import inside a function hides a circle from Python, not from a reader."""
    assert circles(package) == {}


def calls(path: Path, *names: str) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (getattr(node.func, "id", None) in names or getattr(node.func, "attr", None) in names)
    ]


def test_pure_rooms_open_no_file() -> None:
    found = []
    for path in LAPTOP:
        if room(path) in {"compare", "diagnosis", "report", "outcome", "importers"}:
            found += calls(path, "open", "read_text", "read_bytes", "write_text", "write_bytes", "print")
    assert found == []


def test_one_printer() -> None:
    found = [line for path in LAPTOP if path.name != "console.py" for line in calls(path, "print")]
    allowed = ("orchestrator/demo/server.py", "orchestrator/cli/live.py")  # handshake; rich's own progress console
    assert [line for line in found if not line.startswith(allowed)] == []


def broad_handlers(path: Path) -> list[str]:
    """`except Exception` and bare `except`, but for cleanups that raise again."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            names = {item.id for item in ast.walk(node.type) if isinstance(item, ast.Name)} if node.type else {"bare"}
            reraises = any(isinstance(item, ast.Raise) and item.exc is None for item in ast.walk(node))
            if names & {"Exception", "BaseException", "bare"} and not reraises:
                found.append(str(path.relative_to(ROOT)))
    return found


def test_everything_is_caught_in_two_places_only() -> None:
    found = [name for path in LAPTOP + PAYLOAD for name in broad_handlers(path)]
    assert sorted(found) == ["orchestrator/cli/main.py", "remote_payload/supervisor.py"]


def test_modules_stay_small() -> None:
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in LAPTOP + PAYLOAD}
    assert [f"{path.relative_to(ROOT)}: {size} lines" for path, size in sizes.items() if size > 250] == []


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From a function's first statement to its last; what it promises above is no part of how long it is."""
    told = ast.get_docstring(node, clean=False) is not None and len(node.body) > 1
    return (node.end_lineno or 0) - node.body[told].lineno + 1


def test_functions_stay_small() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {node.name}, {code_lines(node)} lines"
        for path in LAPTOP + PAYLOAD
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and code_lines(node) > 40
    ]
    assert long == []


def test_every_file_stands_in_the_readmes_tree() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [
        str(path.relative_to(ROOT))
        for path in LAPTOP + PAYLOAD + sorted((ROOT / "jobs").glob("*.toml"))
        if path.name != "__init__.py" and path.name not in readme
    ]
    assert missing == []
