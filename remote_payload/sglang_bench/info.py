"""What a running SGLang says about itself over HTTP, whichever version it is."""

from remote_payload.schema.bench import Snapshot


def snapshot(url: str, key: str | None, began_s: float) -> Snapshot:
    """Its own counters now; `time_s` of the answer is seconds since `began_s` (monotonic).

    What the server does not tell stays None; a server that does not answer gives an empty Snapshot. Takes at most a
    few seconds.
    """
    raise NotImplementedError


def flush(url: str, key: str | None) -> bool:
    """Empty the prefix cache, which also resets the accept counters; False where it refuses (requests are running)."""
    raise NotImplementedError
