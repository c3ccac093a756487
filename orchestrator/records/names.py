"""Names people give: a baseline, a metric, a tag. They become file names."""

NAME_RULE = "lower-case letters, digits, `.`, `_`, `-`, starting with a letter or digit, at most 64 characters"
_NAME_FIRST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_NAME_REST = _NAME_FIRST | frozenset("._-")


def is_name(text: str) -> bool:
    """Whether `text` follows NAME_RULE (it becomes a file name)."""
    return 0 < len(text) <= 64 and text[0] in _NAME_FIRST and set(text) <= _NAME_REST
