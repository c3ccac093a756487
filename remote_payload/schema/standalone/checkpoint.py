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
    """A run of sampled draft ids that belong to target tokens a constant beside the ones the map gives."""

    first: int
    """First sampled draft id of the run."""
    last: int
    """Last sampled draft id of the run; the true edges lie within a window (64 sampled ids) of these."""
    ids: int
    shift: int
    """Add this to the map's token ids to set the run right."""
    correlation: float
    """Mean correlation of its rows under the shifted map; `as_mapped`: under the map as it is."""
    as_mapped: float


class HeadRelation(Record):
    """Whether the drafter's lm_head knows its tokens under the vocabulary map as the target's lm_head does.

    For a sampled draft id: how its row's cosines with the other sampled rows correlate with the cosines of the target's
    rows that the map leads to. Tokens are alike or unlike in any head trained on the same language, so it holds for
    heads trained from nothing, and of another width: 0.7 for a sound small drafter, 0 +- 0.04 for a wrong map, for
    permuted rows, for a random head or another target's.
    """

    sampled: int
    related: int
    """Of the sampled ids, those whose correlation stands clear of chance. Nearly all: head and map belong together."""
    correlation: float
    """Median over the sampled ids."""
    elsewhere: int = 0
    """Unrelated ids whose row is that of another sampled, unrelated id by a wide margin: rows are permuted among them.
    A lower bound; where most rows are permuted nothing is left to compare with, and it is 0."""
    shifts: tuple[HeadShift, ...] = ()
    """Runs where the map shifted by a constant (-2..2) fits and the map itself does not, ascending."""
    row_shift: int | None = None
    """The constant k (-2..2, not 0) for which row i + k of the head belongs to the token of draft id i, nearly
    everywhere: head and map are rolled against each other; `shifts` is empty then. None = this fits no better."""
    t2d_related: int | None = None
    """`related` under the map that t2d tells (the tokens it marks, ascending); None = there is no t2d of the right
    size, or it tells the same map. High where `related` is low: d2t is wrong and t2d right."""
    t2d_correlation: float | None = None
    """`correlation` under that map."""


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
    head: HeadRelation | None = None
    """Under the reading of d2t that was used; None = the drafter has no head of its own, or too few tokens to tell."""


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
    """e.g. `weights`, `copy of weights` (all of it lies in another file too, number by number), `vocabulary map`."""
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
