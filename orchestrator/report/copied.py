"""Lines that are there to be copied: JSON, on one line where it fits, else a key a line."""

import json
import re
from typing import Any

_KEY = re.compile(r'"[^"]+": $')


def copied_json(text: str, width: int, indent: str) -> tuple[str, list[str]] | None:
    """The words before an object of JSON that ends the text, and the object in lines; None where none ends it.

    e.g. `set in config.json: "eagle_config": {...}`; a key that stands before the object goes with it.
    """
    start = text.find("{")
    if start < 0:
        return None
    try:
        value = json.loads(text[start:])
    except ValueError:
        return None
    key = _KEY.search(text[:start])
    words, name = (text[:start], "") if key is None else (text[: key.start()], key.group())
    return words.rstrip(), _lines(f"{indent}{name}", value, "", width)


def _lines(begin: str, value: Any, end: str, width: int) -> list[str]:
    """`begin`, the value and `end`; broken up where it is an object and too long."""
    whole = f"{begin}{json.dumps(value)}{end}"
    if len(whole) <= width or not isinstance(value, dict) or not value:
        return [whole]
    indent = " " * (len(begin) - len(begin.lstrip()) + 2)
    lines = [f"{begin}{{"]
    for place, (key, item) in enumerate(value.items(), start=1):
        lines += _lines(f"{indent}{json.dumps(key)}: ", item, "," if place < len(value) else "", width)
    return [*lines, f"{indent[2:]}}}{end}"]
