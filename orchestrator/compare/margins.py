"""Practical margins of one's own: `eagle3.toml [margins]`, in place of the catalogue's."""

import difflib
import math
from collections.abc import Mapping

from orchestrator.compare.metrics import METRICS, metric_of
from orchestrator.errors import ConfigError


def checked_margins(table: Mapping[str, object], where: str) -> dict[str, float]:
    """Margins by metric: a share of the baseline for ratios, points (0.01 = 1 point) for shares.

    A metric may have its role before it (`declared.`, `best.`); without one it holds for both. Raises ConfigError.
    """
    problems, found = [], {}
    for name, value in table.items():
        if metric_of(name) is None:
            close = difflib.get_close_matches(name, METRICS, n=1)
            guess = f" (did you mean `{close[0]}`?)" if close else f"; there are: {', '.join(METRICS)}"
            problems.append(f"`margins.{name}`: no such metric{guess}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
            problems.append(
                f"`margins.{name}`: expected a number above 0 and below 1 (0.02 = 2 % or 2 points), found: {value!r}"
            )
        elif math.isfinite(value):
            found[name] = float(value)
    if problems:
        raise ConfigError(f"{where}: " + (problems[0] if len(problems) == 1 else "".join(f"\n  {x}" for x in problems)))
    return found
