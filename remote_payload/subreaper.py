"""Making this process the one that orphans of its tree come home to."""

PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """prctl(PR_SET_CHILD_SUBREAPER, 1), Linux 3.4 and later, no root needed. False where it cannot be had."""
    try:
        import ctypes  # noqa: PLC0415 - some builds of Python lack it

        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False
