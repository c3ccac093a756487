"""What a served benchmark can be found to be, in a word."""

from typing import Literal

ServedVerdict = Literal[
    "invalid",
    "simulated",
    "not_working",
    "suspicious_baseline",
    "not_comparable",
    "faster",
    "slower",
    "mixed",
    "no_difference",
    "cannot_tell",
    "measured",
    "nothing_measured",
]
"""`not_comparable`: the two sides did not do the same work; `cannot_tell`: too few repeats to tell their speeds."""
