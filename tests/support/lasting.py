"""Results of other tools as they would be had they taken another time: no number contradicts another."""

from collections.abc import Mapping
from typing import Any

RATES = ("output_throughput", "request_throughput", "total_throughput", "total_token_throughput")


def lasting(row: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The row with its throughputs over another duration; its latencies stay."""
    slower = row["duration"] / seconds
    return {**row, "duration": seconds, **{name: row[name] * slower for name in RATES if name in row}}


def at_throughput(row: Mapping[str, Any], tok_s: float) -> dict[str, Any]:
    """The row with a duration that makes its output throughput this one."""
    return lasting(row, row["duration"] * row["output_throughput"] / tok_s)
