"""A document's values as JSON text: plain ASCII, one form for the same values, null for what is no number."""

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(values: Mapping[str, Any]) -> str:
    """The values on one line."""
    return json.dumps(_finite(values), ensure_ascii=True, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
