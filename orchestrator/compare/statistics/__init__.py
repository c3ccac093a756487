"""What two series of raw numbers say about each other: change, interval, tests, verdict. Opens no file.

Prompts are compared in pairs where both sides answered them, runs by Welch's t on their logs; a number without samples
is taken as it stands. scipy's distributions and numpy are imported where they are used: the command's start needs none.
"""

from orchestrator.compare.statistics.averages import geometric_mean, mean
from orchestrator.compare.statistics.between_runs import disagreement
from orchestrator.compare.statistics.bootstrap import with_bootstrap
from orchestrator.compare.statistics.merging import merge_series
from orchestrator.compare.statistics.multiplicity import adjust, benjamini_hochberg, holm
from orchestrator.compare.statistics.series import compare_series
from orchestrator.compare.statistics.unpaired import estimate, is_mostly_equal

__all__ = [
    "adjust",
    "benjamini_hochberg",
    "compare_series",
    "disagreement",
    "estimate",
    "geometric_mean",
    "holm",
    "is_mostly_equal",
    "mean",
    "merge_series",
    "with_bootstrap",
]
