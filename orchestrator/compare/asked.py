"""How a comparison is asked for: what is under test, what alone counts, what is worth a word."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.compare.fingerprint import require_known, value_of
from orchestrator.errors import UsageError
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

    def require_loads(self, measurements: Sequence[Measurement]) -> None:
        """Raise UsageError, with the values that there are, where no load of any side is one that is asked for."""
        require_known(self.where, "--where", measurements)
        for key, value in self.where.items():
            told = dict.fromkeys(found for item in measurements if (found := value_of(item, key)) is not None)
            if value not in told:
                there = sorted(told, key=lambda one: (len(one), one))  # numbers by size
                raise UsageError(
                    f"--where: no load of any side has {key}={value}", hint=f"there are: {', '.join(there)}"
                )
        if self.where and not any(map(self.keeps, measurements)):
            asked = " ".join(f"{key}={value}" for key, value in self.where.items())
            raise UsageError(f"--where: no load of any side has all of: {asked}")
