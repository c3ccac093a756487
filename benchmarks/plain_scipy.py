"""What somebody would write instead of `diff` and `report`: the same statistics of served benchmarks, from their files.

Of each run against the first: accept length paired by prompt (linearised log ratio with Student's t, Wilcoxon's test),
throughput by repeat (Welch on the logs, Mann-Whitney), Benjamini-Hochberg over the runs. No checks, no circumstances,
no words. Usage: plain_scipy.py [--page FILE] RESULT_FOLDER RESULT_FOLDER...; FILE: a page of a table and three figures.
"""

import collections
import gzip
import io
import json
import pathlib
import sys

import numpy as np
from scipy import stats

Prompts = dict[int, list[int]]


def read(folder: str) -> tuple[Prompts, list[float]]:
    """Tokens and verify steps by prompt, and output tok/s by point, of the side that speculates."""
    points = [p for p in json.loads((pathlib.Path(folder) / "bench.json").read_text())["points"] if p["side"] == "spec"]
    mine = {p["point"] for p in points}
    prompts: Prompts = collections.defaultdict(lambda: [0, 0])
    tokens: dict[int, int] = collections.defaultdict(int)
    with gzip.open(pathlib.Path(folder) / "requests.jsonl.gz") as file:
        for line in file:
            one = json.loads(line)
            if one["point"] not in mine:
                continue
            prompts[one["prompt"]][0] += one["correct_drafts"] + one["verify_steps"]
            prompts[one["prompt"]][1] += one["verify_steps"]
            tokens[one["point"]] += one["completion_tokens"]
    return prompts, [tokens[p["point"]] / (p["last_token_s"] - p["first_sent_s"]) for p in points]


def compared(ours: tuple[Prompts, list[float]], theirs: tuple[Prompts, list[float]]) -> tuple[float, ...]:
    """Change of the accept length with its interval and p, interval of the throughput's with two p."""
    both = sorted(ours[0].keys() & theirs[0].keys())
    y, x, v, w = np.array([[*ours[0][key], *theirs[0][key]] for key in both], dtype=float).T
    z = y / y.sum() - x / x.sum() - v / v.sum() + w / w.sum()
    n = len(z)
    change = np.log(y.sum() / x.sum()) - np.log(v.sum() / w.sum())
    low, high = np.exp(change + np.sqrt(n / (n - 1) * (z**2).sum()) * stats.t.ppf([0.025, 0.975], n - 1))
    difference = y / x - v / w
    paired = stats.wilcoxon(difference).pvalue if difference.any() else 1.0
    welch = stats.ttest_ind(np.log(ours[1]), np.log(theirs[1]), equal_var=False)
    slow, fast = np.exp(welch.confidence_interval())
    ranks = stats.mannwhitneyu(ours[1], theirs[1]).pvalue
    return tuple(map(float, (np.exp(change), low, high, paired, slow, fast, welch.pvalue, ranks)))


def page(found: list[tuple[float, ...]], runs: list[tuple[Prompts, list[float]]]) -> str:
    """A table of the comparisons, and throughput, accept length and its spread as figures."""
    import matplotlib as mpl  # noqa: PLC0415 - as `report` does: not for a table

    mpl.use("svg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    logs = [np.log(rates) for _, rates in runs]
    half = [stats.t.ppf(0.975, len(one) - 1) * stats.sem(one) for one in logs]
    means = [np.exp(one.mean()) for one in logs]
    lengths = [sum(t for t, _ in one.values()) / sum(s for _, s in one.values()) for one, _ in runs]
    figures = []
    for draw in (
        lambda axes: axes.errorbar(
            range(len(means)), means, [m * h for m, h in zip(means, half, strict=True)], fmt="o"
        ),
        lambda axes: axes.plot(lengths, "o"),
        lambda axes: axes.hist([t / s for t, s in runs[0][0].values()]),
    ):
        figure, axes = plt.subplots()
        draw(axes)
        text = io.StringIO()
        figure.savefig(text, format="svg")
        plt.close(figure)
        figures.append(text.getvalue())
    cells = ("".join(f"<td>{value:.4g}</td>" for value in row) for row in found)
    rows = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<!doctype html><table>{rows}</table>{''.join(figures)}"


def main() -> None:
    """Print the figures of result folders, each against the first."""
    words = sys.argv[1:]
    file = words[1] if words[0] == "--page" else None
    first, *others = runs = [read(folder) for folder in (words[2:] if file else words)]
    found = [compared(first, other) for other in others]
    for column in (3, 6, 7):
        adjusted = stats.false_discovery_control([row[column] for row in found])
        found = [(*row[:column], float(p), *row[column + 1 :]) for row, p in zip(found, adjusted, strict=True)]
    for row in found:
        print("accept length {:.4f} [{:.4f}, {:.4f}] p={:.3g}; tok/s [{:.4f}, {:.4f}] p={:.3g}, {:.3g}".format(*row))
    if file:
        pathlib.Path(file).write_text(page(found, runs), encoding="utf-8")


if __name__ == "__main__":
    main()
