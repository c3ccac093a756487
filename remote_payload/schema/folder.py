"""A model's folder as a result tells it: enough to know the same weights again, wherever they lie."""

from remote_payload.schema.record import Record


class FolderFacts(Record):
    """One folder of weights; None = it could not be read where the job ran."""

    path: str
    weights_sha256: str | None = None
    """Over the weight files' sizes, their headers and samples of every tensor: not over every byte."""
    config_sha256: str | None = None
    """Of its `config.json`."""
    tensors_sha256: str | None = None
    """Over every tensor's name, format, shape and samples, in whatever files they lie; None = no safetensors, or an
    older record."""
