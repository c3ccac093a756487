"""The rows that the Arrow files in `tests/golden/rows/` hold."""

from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "rows"
ROWS = [[(7 * row + 3 * place) % 40 for place in range(9 + row)] for row in range(5)]
MASKS = [[int(place >= 3) for place in range(9 + row)] for row in range(5)]
