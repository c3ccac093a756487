"""K20: the rows as data: NaN, lengths, mask share, truncation, duplicates, and overlap of train and held-out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from orchestrator.compare.chains import segments, unpack_row
from orchestrator.compare.stats import MIN_ROWS
from orchestrator.diagnosis.finding import CheckResult, Evidence, Severity, Subject, count, share
from orchestrator.diagnosis.measured import Measured
from remote_payload.schema import RowFacts, RowsFacts, RowsLint

MANY = 0.1
"""Share of rows beyond which an oddity is more than one odd row."""
LEAST_CUT = 5
PILE = 2
"""Times as many rows at the longest length as at any other: what a limit piles up, chance does not."""
FULL_MASK = 0.98
"""Share of response tokens beyond which the mask marks the prompts as well."""


def check(measured: Measured) -> tuple[CheckResult, ...]:
    """Train rows, then held-out rows: what is wrong with these is no fault of the training text."""
    result = measured.result
    found = _split("train", result.rows, measured.train.rows)
    if result.heldout is not None:
        held = _split("held-out", result.heldout, () if measured.heldout is None else measured.heldout.rows)
        found += [replace(item, severity="minor") if item.severity == "serious" else item for item in held]
    return tuple(found)


def _split(name: str, rows: RowsFacts, each: Sequence[RowFacts]) -> list[CheckResult]:
    subject = Subject(check="K20", title=f"data, {name} rows")
    lint = rows.lint
    found = (
        []
        if lint is None
        else [*_broken(subject, rows, lint), *_odd(subject, rows, lint, each), *_leak(subject, rows, lint)]
    )
    found += _skipped(subject, rows, lint)
    found += _mask(subject, rows)
    if found:
        return found
    evidence: tuple[Evidence, ...] = (
        count("rows used", rows.used, rows.found, "rows"),
        share("tokens that belong to responses", rows.response_tokens, rows.tokens),
    )
    if lint is None:
        return [subject.cannot_tell("the rows were not linted", needs="a run of this version", evidence=evidence)]
    evidence += (
        count("different response tokens", lint.distinct_response_tokens, unit="tokens"),
        count("longest row", lint.longest, unit="tokens"),
    )
    if rows.used < MIN_ROWS:
        return [
            subject.cannot_tell(f"{rows.used} rows say little", needs=f"{MIN_ROWS} rows at least", evidence=evidence)
        ]
    return [subject.passed("nothing is odd about the rows", evidence)]


def _broken(subject: Subject, rows: RowsFacts, lint: RowsLint) -> list[CheckResult]:
    """Rows that could not be used because of what they hold."""
    found = []
    for number, what, fix in (
        (lint.with_nan, "NaN or infinity", "capture them again; training on such a row ruins the drafter"),
        (lint.lengths_differ, "tokens, mask and states of different lengths", "capture them again with one tokenizer"),
    ):
        if number:
            found.append(
                subject.finding(
                    f"{number} of {rows.found} rows hold {what}",
                    severity=_by_share(number, rows.found),
                    cause="data",
                    evidence=(share(f"rows with {what}", number, rows.found),),
                    remedy=(fix,),
                    refuted_by="the files read without complaint by the trainer's own loader, with finite numbers",
                )
            )
    return found


def _is_cut(each: Sequence[RowFacts], longest: int) -> bool:
    """Whether rows pile up at the longest length as a trainer's limit makes them.

    Few rows tie by chance; and where the responses that end there are all of one length, the generation's budget ended
    them, not the row's.
    """
    lengths = Counter(row.tokens for row in each)
    at_longest = lengths.pop(longest, 0)
    last = [segments(unpack_row(row).loss_mask)[-1:] for row in each if row.tokens == longest]
    responses = {stop - start for run in last for start, stop in run if stop == longest}
    return at_longest > PILE * max(lengths.values(), default=0) and len(responses) > 1


def _odd(subject: Subject, rows: RowsFacts, lint: RowsLint, each: Sequence[RowFacts]) -> list[CheckResult]:
    found = []
    many = lint.cut_at_longest >= LEAST_CUT and lint.cut_at_longest > MANY * rows.used
    if many and _is_cut(each, lint.longest):
        found.append(
            subject.finding(
                f"{lint.cut_at_longest} of {rows.used} rows were cut at {lint.longest} tokens, within their response",
                severity="minor",
                cause="data",
                evidence=(share(f"rows cut at {lint.longest} tokens", lint.cut_at_longest, rows.used),),
                remedy=(
                    "raise the trainer's maximum length to what is served: beyond it the drafter has seen nothing",
                ),
                refuted_by="responses that end there by themselves (a fixed max_tokens of the generation)",
            )
        )
    if lint.duplicates >= 3 and lint.duplicates > MANY * rows.used:
        found.append(
            subject.finding(
                f"{lint.duplicates} of {rows.used} rows are duplicates of others",
                severity="minor",
                cause="data",
                evidence=(share("rows that equal an earlier one", lint.duplicates, rows.used),),
                remedy=("remove duplicates: they count several times, here and in training",),
                refuted_by="rows that were repeated on purpose",
            )
        )
    return found


def _leak(subject: Subject, rows: RowsFacts, lint: RowsLint) -> list[CheckResult]:
    """Held-out rows that are no held-out rows."""
    shared, prompts = lint.also_in_train or 0, lint.prompts_in_train or 0
    if not rows.used or (not shared and prompts <= MANY * rows.used):
        return []
    what = "rows are train rows" if shared else "rows answer a train row's prompt"
    number = shared or prompts
    return [
        subject.finding(
            f"{number} of {rows.used} held-out {what}: the gap to train is larger than it looks",
            severity="minor",
            cause="data",
            evidence=(
                share("held-out rows that equal a train row", shared, rows.used),
                share("held-out rows with a train row's prompt", prompts, rows.used),
            ),
            remedy=(
                "give rows that it was not trained on: `--heldout` names the training rows"
                if shared == rows.used
                else "hold out whole conversations, by prompt",
            ),
            refuted_by="held-out rows that were meant to repeat the train rows",
        )
    ]


def _skipped(subject: Subject, rows: RowsFacts, lint: RowsLint | None) -> list[CheckResult]:
    explained = 0 if lint is None else lint.with_nan + lint.lengths_differ
    skipped = len(rows.skipped) - explained
    if skipped <= MANY * rows.found or skipped < 1:
        return []
    return [
        subject.finding(
            f"{skipped} of {rows.found} rows could not be used, the first because {rows.skipped[0].reason}",
            severity="minor",
            cause="data",
            evidence=(share("rows left out", skipped, rows.found),),
            remedy=("see the skipped rows in the report; those that are left may be unlike the others",),
            refuted_by="rows that were left out on purpose",
        )
    ]


def _mask(subject: Subject, rows: RowsFacts) -> list[CheckResult]:
    if rows.response_tokens <= FULL_MASK * rows.tokens:
        return []
    return [
        subject.finding(
            "the loss mask marks nearly every token, prompts as well: accuracies here are not those of responses",
            severity="minor",
            cause="data",
            evidence=(share("tokens that the mask marks", rows.response_tokens, rows.tokens),),
            remedy=(
                "mark responses alone (ModelOpt's default mask marks everything), or give a merged JSONL with masks",
            ),
            refuted_by="rows that hold no prompts",
        )
    ]


def _by_share(number: int, of: int) -> Severity:
    return "serious" if number > MANY * of else "minor"
