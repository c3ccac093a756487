"""Folder hygiene: two weight files, an index that disagrees, old vocabulary maps. Engines take what sorts last."""

from orchestrator.diagnosis.checks.factors import ranking_of
from orchestrator.diagnosis.finding import CheckResult, Evidence, Subject, count
from orchestrator.diagnosis.measured import Measured
from orchestrator.diagnosis.verdict import is_poor
from remote_payload.schema import WeightFile

FOLDER = Subject(check="folder", title="folder hygiene")
COPY = "copy of weights"
"""Role of a file all of whose tensors lie in another one as well, number by number."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """A finding for each file with a problem."""
    files = measured.result.checkpoint.files
    if not files:
        return (FOLDER.cannot_tell("the result lists no files", needs="a run of this version"),)
    found = tuple(
        _finding(file) if file.overridden_by is None else _overridden(file, file.overridden_by, measured)
        for file in files
        if file.problem is not None
    )
    if found:
        return found
    used = sum(file.used for file in files)
    copies = [file.name for file in files if file.role == COPY]
    beside = f"and the same numbers once more in {', '.join(copies)}" if copies else "nothing beside it"
    return (FOLDER.passed(f"one set of weights, {beside}", (count("files used", used, len(files)),)),)


def _overridden(file: WeightFile, winner: str, measured: Measured) -> CheckResult:
    """Two sets of weights; how well the winner's read tells which of them is the drafter."""
    ranking = ranking_of(measured)
    poor = ranking is None or is_poor(ranking.best)
    move, keep = (winner, file.name) if poor else (file.name, winner)
    return FOLDER.finding(
        f"{file.name}: {file.problem}",
        severity="fatal" if poor else "serious",
        cause="loading",
        evidence=(
            Evidence(name="file whose tensors are loaded", value=winner),
            Evidence(name=f"size of {file.name}, which is overridden", value=file.size_bytes, unit="bytes"),
        ),
        remedy=(
            f"move {move} out of the folder: the weights that are loaded read {'poorly' if poor else 'well'}",
            f"then run again, on {keep} alone",
        ),
        refuted_by="an engine whose log names the files it loaded, and this is none of them",
    )


def _finding(file: WeightFile) -> CheckResult:
    name = f"size of {file.name} ({file.role}, {'used' if file.used else 'not used'} here)"
    return FOLDER.finding(
        f"{file.name}: {file.problem}",
        severity="serious" if file.used and file.role == "weights" else "minor",
        cause="loading",
        evidence=(Evidence(name=name, value=file.size_bytes, unit="bytes", n=file.tensors),),
        remedy=(
            "write the index anew, or delete it where there is one file"
            if file.role == "index"
            else f"keep what belongs to this drafter and move {file.name} (or the other file) out of the folder",
        ),
        refuted_by="an engine whose log names the files it loaded, and this is none of them",
    )
