"""What a SGLang's source says of the states it hands to a drafter: pieces of its code, judged on the laptop."""

from remote_payload.schema.record import Record, require


class SourcePiece(Record):
    """One piece of the source, as Python writes it again: without comments, one statement a line."""

    file: str
    """Below the package, e.g. `srt/models/llama.py`."""
    owner: str | None
    """Its class; None = a function of the module."""
    name: str
    text: str


class CaptureRule(Record):
    """The pieces that decide what is captured. A piece that is not there was not found, which is no statement."""

    version: str | None
    path: str | None = None
    target_class: str | None
    """`architectures` of the target's config.json."""
    found: str | None = None
    """File of the target's class; None = no model of this SGLang has that class."""
    setters: tuple[SourcePiece, ...] = ()
    """`set_eagle3_layers_to_capture`: the target class's own or inherited one, then those it hands on to, in order."""
    forward: SourcePiece | None = None
    """The layer loop of the model that is told: the lines that name the layers to capture, and those around."""
    reader: tuple[SourcePiece, ...] = ()
    """Where the drafter's config is read for layer ids."""
    boundary: tuple[SourcePiece, ...] = ()
    """What takes the state at a layer's entry, where the loop hands that to somebody else."""
    returns_hidden: bool = False
    """Whether the server has `--enable-return-hidden-states`."""
    returns_aux: bool = False
    """Whether it has `--enable-return-aux-hidden-states`, which needs no drafter."""
    forces_draft_tokens: bool | None = None
    """Whether it overwrites num_draft_tokens with num_steps + 1 at topk 1; None = where it would was not found."""
    counts_states: bool | None = None
    """Whether it makes a drafter's fc for as many states as its config names, not always for three; None = its model of
    such a drafter was not found, or an older record."""


class WiringRequest(Record):
    """Ask what the installed SGLang would feed a drafter. Paths are on the host; `~` is its home."""

    nonce: str
    root: str
    model: str
    draft: str
    python: str
    """Interpreter that would run SGLang."""
    exec_prefix: tuple[str, ...] = ()
    source: str | None = None
    """Folder of a package `sglang` that is read instead of the one that the interpreter would import."""
    attach_url: str | None = None
    """A server that is up: what is empty of `model` and `draft` is taken at its word."""

    def __post_init__(self) -> None:
        is_told = self.attach_url is not None
        require(is_told or bool(self.model.strip()), "`model` must name the target's folder")
        require(is_told or bool(self.draft.strip()), "`draft` must name the drafter's folder")


class WiringFacts(Record):
    """What there is to judge by."""

    rule: CaptureRule
    target_config: str | None
    """The target's config.json; None = it could not be read."""
    draft_config: str | None
    fc_shape: tuple[int, int] | None = None
    """Rows and columns of the drafter's fc.weight; None = not found in its safetensors files, or an older record."""
    told_model: str | None = None
    """The target's folder by the word of a server that is up; None = it was not asked, or such a folder is not here."""
    told_draft: str | None = None
