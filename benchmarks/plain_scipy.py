"""What somebody would write instead of `diff`: the same statistics of two served benchmarks, from the same files.

Accept length paired by prompt (linearised log ratio with Student's t, Wilcoxon's test), throughput by repeat (Welch on
the logs, Mann-Whitney). No checks, no circumstances, no words. Usage: plain_scipy.py RESULT_FOLDER RESULT_FOLDER
"""

import collections
import gzip
import json
import pathlib
import sys

import numpy as np
from scipy import stats


def read(folder: str) -> tuple[dict[int, list[int]], list[float]]:
    """Tokens and verify steps by prompt, and output tok/s by point."""
    prompts: dict[int, list[int]] = collections.defaultdict(lambda: [0, 0])
    tokens: dict[int, int] = collections.defaultdict(int)
    with gzip.open(pathlib.Path(folder) / "requests.jsonl.gz") as file:
        for line in file:
            one = json.loads(line)
            mine = prompts[one["prompt"]]
            mine[0] += one["correct_drafts"] + one["verify_steps"]
            mine[1] += one["verify_steps"]
            tokens[one["point"]] += one["completion_tokens"]
    points = json.loads((pathlib.Path(folder) / "bench.json").read_text())["points"]
    return prompts, [tokens[p["point"]] / (p["last_token_s"] - p["first_sent_s"]) for p in points]


def main() -> None:
    """Print the figures of two result folders."""
    (ours, our_rates), (theirs, their_rates) = map(read, sys.argv[1:3])
    both = sorted(ours.keys() & theirs.keys())
    y, x, v, w = np.array([[*ours[key], *theirs[key]] for key in both], dtype=float).T
    z = y / y.sum() - x / x.sum() - v / v.sum() + w / w.sum()
    n = len(z)
    change = np.log(y.sum() / x.sum()) - np.log(v.sum() / w.sum())
    error = np.sqrt(n / (n - 1) * (z**2).sum())
    low, high = np.exp(change + error * stats.t.ppf([0.025, 0.975], n - 1))
    print(f"accept length {np.exp(change):.4f} [{low:.4f}, {high:.4f}] p={stats.wilcoxon(y / x - v / w).pvalue:.3g}")
    welch = stats.ttest_ind(np.log(our_rates), np.log(their_rates), equal_var=False)
    low, high = np.exp(welch.confidence_interval())
    rank = stats.mannwhitneyu(our_rates, their_rates).pvalue
    print(f"tok/s [{low:.4f}, {high:.4f}] p={welch.pvalue:.3g}, by ranks {rank:.3g}")


if __name__ == "__main__":
    main()
