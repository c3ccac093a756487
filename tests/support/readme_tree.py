"""The README's tree, made from the first sentence of every module's docstring: `python -m tests.support.readme_tree`.

Rewrites the block between the two markers of README.md; a test compares them.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BEGIN, END = "<!-- tree: begin -->", "<!-- tree: end -->"
WIDTH = 140
TOP = {
    "jobs": "Data only: the job files, their comments say why the numbers.",
    "tests": "Mirrors the packages; `support/` (real sshd, laptops, tiny models), `end_to_end/`, `golden/`.",
    "benchmarks": "What measures the project against its peers, as ratios in one run.",
}


def tree() -> str:
    """The block as it should stand."""
    lines = ["```text"]
    for package in ("orchestrator", "remote_payload"):
        lines += _folder(ROOT / package, 0)
    lines += [_line("jobs/", TOP["jobs"], 0)]
    lines += [_line(path.name, _toml_sentence(path), 1) for path in sorted((ROOT / "jobs").glob("*.toml"))]
    lines += [_line(f"{name}/", TOP[name], 0) for name in ("tests", "benchmarks")]
    return "\n".join([*lines, "```"])


def _folder(folder: Path, depth: int) -> list[str]:
    lines = [_line(f"{folder.name}/", _sentence(folder / "__init__.py"), depth)]
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if path.is_dir() and (path / "__init__.py").exists():
            lines += _folder(path, depth + 1)
        elif path.suffix == ".py" and path.name != "__init__.py":
            lines.append(_line(path.name, _sentence(path), depth + 1))
    return lines


def _line(name: str, sentence: str, depth: int) -> str:
    text = f"{'  ' * depth}{name}".ljust(28) + " " + sentence
    return text if len(text) <= WIDTH else text[: WIDTH - 3].rsplit(" ", 1)[0] + " .."


def _sentence(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[a-z)`])\. |\.$", first)[0]


def _toml_sentence(path: Path) -> str:
    comment = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    return re.split(r"\. ", comment)[0].rstrip(".")


def replaced(readme: str) -> str:
    """The README with the block made anew. Raises ValueError where the markers are missing."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("README.md must hold the two markers of the tree")
    return f"{before}{BEGIN}\n\n{tree()}\n\n{END}{after}"


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(replaced(path.read_text(encoding="utf-8")), encoding="utf-8")
