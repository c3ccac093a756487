"""The drafter as it was read: its dialect, its tensors, the computation they mean, and what SGLang makes of it."""

from typing import Literal

from remote_payload.schema.record import Record

Vocabulary = Literal["offset", "absolute", "identity"]
"""How d2t is read: target id = i + d2t[i], = d2t[i], or = i whatever d2t says."""


class TensorFact(Record):
    """One tensor that the test used, under its canonical name, and where it came from."""

    name: str
    stored_name: str
    shape: tuple[int, ...]
    dtype: str
    source: Literal["draft", "target"]


class TensorProblem(Record):
    """A tensor that is missing, unexpected, misshapen or not finite."""

    problem: Literal["missing", "unexpected", "misshapen", "not_finite"]
    name: str
    expected: str
    found: str


class TensorStatistics(Record):
    """Numbers of one of the drafter's own tensors by which a random or untouched one shows; large ones are sampled."""

    name: str
    mean: float
    std: float
    spectral_excess: float | None = None
    """Largest singular value / (std * (sqrt(rows) + sqrt(columns))): about 1 for independent random numbers, more for
    anything trained. None = not a matrix."""
    row_norm_spread: float | None = None
    """Relative standard deviation of the row norms * sqrt(2 * columns): about 1 for independent normal numbers."""
    duplicate_rows: int = 0
    """Rows of a matrix that equal another, earlier row bit by bit."""
    constant: float | None = None
    """The one value all entries have; None = they differ. A norm that was never trained is constant 1."""


class DialectFacts(Record):
    """Whose checkpoint this is, and what says so."""

    name: Literal[
        "specforge",
        "safeailab",
        "speculators",
        "speculators_old",
        "vllm",
        "modelopt",
        "torchspec",
        "automodel",
        "unknown",
    ]
    evidence: tuple[str, ...]
    also_possible: tuple[str, ...] = ()
    """Dialects that these files do not tell apart from `name`."""


class GraphFlag(Record):
    """One choice of the drafter's computation, and what it was read from.

    `name` and `value` are spelled as in `ReadingFacts.changes`.
    """

    name: str
    value: str
    source: Literal["config", "tensors", "dialect", "default"]
    """What decided."""
    evidence: str
    """e.g. "`norm_before_residual: true` in config.json"."""
    contradicted_by: str | None = None
    """What says otherwise and was overruled, in words."""
    served: str | None = None
    """What SGLang computes instead, spelled like `value`; None = the same."""
    served_why: str | None = None


class ConfigNote(Record):
    """Something in config.json that is wrong, contradictory or ignored by engines. `key` is where it stands."""

    key: str
    problem: str
    remedy: str


class MapReading(Record):
    """What the vocabulary map would be under one reading of d2t."""

    reading: Vocabulary
    in_range: int
    """Draft ids that lead to a target token at all."""
    distinct: int
    """Different target tokens they lead to."""
    increasing: bool
    """Whether target ids strictly increase with draft ids."""
    agrees_with_t2d: bool | None = None
    """None = there is no t2d."""
    head_cosine: float | None = None
    """Mean cosine between lm_head's row i and the target head's row of the token i leads to; None = sizes differ."""


class HeadShift(Record):
    """A run of sampled draft ids whose rows of lm_head are those of target tokens a constant beside the map's."""

    first: int
    """First sampled draft id of the run."""
    last: int
    """Last sampled draft id of the run."""
    ids: int
    """Sampled draft ids in it whose row has a nearest target row at all."""
    shift: int
    """Nearest target token - the token that the map gives."""


class HeadNearest(Record):
    """Sampled rows of the drafter's lm_head against every row of the target's: which token each is nearest to.

    Nearest is by cosine. A row with no target row closer than chance allows is not counted as `near`: a head that was
    trained from nothing has none, and then nothing here speaks about the map.
    """

    sampled: int
    """Draft ids looked at."""
    near: int
    """Of these, ids whose nearest target row stands out from the others."""
    as_mapped: int
    """Of `near`: the nearest is the very token that the map gives."""
    elsewhere_mapped: int
    """Of `near`: the nearest is a token that the map gives to another draft id. With few `as_mapped` and one draft id a
    token: the head's rows (or the map's) are permuted."""
    shifts: tuple[HeadShift, ...] = ()
    """Runs that share a shift other than 0, ascending by draft id: the map is off by a constant there."""
    row_shift: int | None = None
    """Where most of `near` is found as another draft id a constant away, that constant (their draft id - own): the rows
    of the head are rolled against the map. None = no such constant."""


class VocabularyFacts(Record):
    """The draft vocabulary's map, read in every way."""

    draft_vocab_size: int
    vocab_size: int
    d2t: bool
    """Whether d2t is stored."""
    all_zero: bool = False
    t2d_marked: int | None = None
    """Tokens that t2d marks; None = no t2d."""
    readings: tuple[MapReading, ...] = ()
    nearest: HeadNearest | None = None
    """The head's rows against all of the target's, under the reading that was used; None = sizes differ, or the drafter
    has no head of its own."""


class SharedTensorFacts(Record):
    """The drafter's own embed_tokens or lm_head against the target's."""

    name: Literal["embed_tokens", "lm_head"]
    stored: bool
    """Whether the drafter has its own."""
    used: Literal["draft", "target"]
    identical: bool | None = None
    """Bit by bit after a cast to the target's dtype, rows under the map; None = not comparable."""
    mean_cosine: float | None = None
    """Mean over (sampled) rows of the cosine with the target's row."""
    served: Literal["draft", "target", "random"] = "target"
    """What SGLang would use."""


class WeightFile(Record):
    """One file of the drafter's folder that holds weights, or could."""

    name: str
    size_bytes: int
    tensors: int | None = None
    """None = not opened."""
    used: bool
    role: str
    """e.g. `weights`, `vocabulary map`, `not in the index`."""
    problem: str | None = None
    """e.g. `old.safetensors overrides 2 of its 15 tensors ...`."""
    overridden_by: str | None = None
    """The file of the folder that holds tensors of this one as well and wins; None = none does."""


class CheckpointFacts(Record):
    """The drafter as it was read."""

    draft: str
    target: str | None
    architecture: str | None
    hidden_size: int
    target_hidden_size: int
    slots: int
    """n of the fc's n * target_hidden_size input columns."""
    vocab_size: int
    draft_vocab_size: int
    tensors: tuple[TensorFact, ...]
    problems: tuple[TensorProblem, ...] = ()
    """Unexpected tensors; a missing, misshapen or NaN tensor ends the job instead."""
    weights_sha256: str | None = None
    config_json: str
    """The drafter's config.json as it stood."""
    dialect: DialectFacts | None = None
    layers: int = 1
    attention: Literal["grouped", "latent"] = "grouped"
    """`grouped`: Llama's; `latent`: DeepSeek's MLA."""
    graph: tuple[GraphFlag, ...] = ()
    """The computation that config.json and tensors mean, flag by flag."""
    notes: tuple[ConfigNote, ...] = ()
    statistics: tuple[TensorStatistics, ...] = ()
    vocabulary: VocabularyFacts | None = None
    shared: tuple[SharedTensorFacts, ...] = ()
    files: tuple[WeightFile, ...] = ()


class DeclaredWiring(Record):
    """What the config declares and what SGLang would feed for it."""

    config_ids: tuple[int, ...] | None
    """`eagle_config.eagle_aux_hidden_state_layer_ids`; None = absent, SGLang's defaults hold."""
    ignored_top_level_ids: tuple[int, ...] | None = None
    """Ids at the top level of config.json, which SGLang never reads for capture."""
    target_class: str | None
    target_layers: int | None
    rule: str
    """Name of SGLang's rule in words, e.g. `id + 1 (llama)`."""
    valid_for: str
    """SGLang versions the rule holds for."""
    captured: tuple[int, ...] | None
    """HF hidden_states indices SGLang would capture, ascending; None = cannot tell, see `problem`."""
    problem: str | None = None
    """Why nothing (or not enough) would be captured, or why it cannot be told."""
    slots: tuple[int, ...] | None = None
    """`captured` as positions in the rows' captured states; None = unlabelled or not among them."""
    changes: tuple[str, ...] = ()
    """How SGLang's computation differs from the checkpoint's own (`graph`), e.g. `residual=raw`; as in ReadingFacts."""
