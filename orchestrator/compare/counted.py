"""A number and what it counts, in words: `1 run`, `3 runs`."""


def counted(number: int, one: str, several: str | None = None) -> str:
    """e.g. `1 repeat`, `3 repeats`; `several`: where it is not `one` and an s, e.g. `rows were` beside `row was`."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"
