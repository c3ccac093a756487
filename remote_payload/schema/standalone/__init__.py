"""What the standalone drafter test measured: raw, with units; figures and verdicts are made on the laptop.

`result/standalone.json` holds one `StandaloneResult`. `result/hits.jsonl.gz` (and `heldout.jsonl.gz` where held-out
rows were given) holds, one JSON a line, first every `RowFacts` in row order, then every `ReadingHits`.

Positions. Row tokens are x_0..x_{T-1}; the state of token j is h_j; the teacher's greedy choice at j is
y_j = argmax(lm_head(final_state_j)), a prediction of x_{j+1}. Draft position j reads h_j and the embedding of
x_{j+offset}; at step s (0-based) it proposes a token that is a hit when it equals y_{j+1+s}. The hit exists only
where j+1+s <= T-1.
"""

from remote_payload.schema.standalone.checkpoint import (
    CheckpointFacts,
    ConfigNote,
    DeclaredWiring,
    DialectFacts,
    GraphFlag,
    HeadRelation,
    HeadShift,
    MapReading,
    SharedTensorFacts,
    TensorFact,
    TensorProblem,
    TensorStatistics,
    Vocabulary,
    VocabularyFacts,
    WeightFile,
)
from remote_payload.schema.standalone.readings import (
    ReadingFacts,
    ReadingHits,
    SelfFed,
    SkippedReading,
    Stage,
    Zone,
)
from remote_payload.schema.standalone.result import MemoryPart, MemoryPlan, Phase, StandaloneResult
from remote_payload.schema.standalone.rows import (
    CaptureCheck,
    CaptureSlot,
    DataDialectFacts,
    MaskEdge,
    RowFacts,
    RowsFacts,
    RowsLint,
    SkippedRow,
    SlotFacts,
    TeacherFacts,
)

__all__ = [
    "CaptureCheck",
    "CaptureSlot",
    "CheckpointFacts",
    "ConfigNote",
    "DataDialectFacts",
    "DeclaredWiring",
    "DialectFacts",
    "GraphFlag",
    "HeadRelation",
    "HeadShift",
    "MapReading",
    "MaskEdge",
    "MemoryPart",
    "MemoryPlan",
    "Phase",
    "ReadingFacts",
    "ReadingHits",
    "RowFacts",
    "RowsFacts",
    "RowsLint",
    "SelfFed",
    "SharedTensorFacts",
    "SkippedReading",
    "SkippedRow",
    "SlotFacts",
    "Stage",
    "StandaloneResult",
    "TeacherFacts",
    "TensorFact",
    "TensorProblem",
    "TensorStatistics",
    "Vocabulary",
    "VocabularyFacts",
    "WeightFile",
    "Zone",
]
