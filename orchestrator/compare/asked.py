"""How a comparison is asked for: what is under test, what alone counts, what is worth a word."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.compare.fingerprint import value_of
from orchestrator.records.measurement import Measurement


@dataclass(frozen=True, kw_only=True)
class Asked:
    """How a comparison is asked for."""

    vary: tuple[str, ...] = ()
    """Circumstances under test, which need not be alike."""
    force: bool = False
    """Give a verdict also where the sides are not comparable; never where one is no measurement."""
    metrics: tuple[str, ...] = ()
    """Compare these alone, and let each of them decide; empty = all, the primary ones decide."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Only loads of which these circumstances are told so, or not told (a typed number)."""
    margins: Mapping[str, float] = field(default_factory=dict)
    """Practical margins in place of the catalogue's, by metric."""

    def keeps(self, measurement: Measurement) -> bool:
        """Whether a load is asked for; one that does not tell is not ruled out."""
        return all(value_of(measurement, key) in (None, value) for key, value in self.where.items())
