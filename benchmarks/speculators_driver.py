"""speculators' own evaluation as a resident process (see `resident.py`), under a Python that has speculators.

    PYTHON speculators_driver.py --data FOLDER --target T --steps 4 --threads 1

`FOLDER` is what `speculators_data.py` wrote. Its dataset, its collation, its model and its metrics do the work, in
bfloat16, with `eager`, the attention it has for where nothing is compiled. Tried with speculators 0.9.0.
"""

from pathlib import Path

import torch
from answering import answer, peak_bytes, peers_arguments
from hs_connectors import FileTransfer
from speculators.losses import resolve_loss_config
from speculators.models.eagle3 import Eagle3SpeculatorConfig
from speculators.models.eagle3.core import Eagle3DraftModel
from speculators.models.eagle3.data import shift_batch
from speculators.train.data import ArrowDataset, CollateFn


def main() -> None:
    """Load, and evaluate all rows for every line on stdin."""
    arguments = peers_arguments("data", "target")
    torch.set_num_threads(arguments.threads)
    imported_bytes = peak_bytes()
    answer({"one": _evaluation(arguments)}, imported_bytes=imported_bytes)


def _evaluation(arguments):
    """A function that evaluates every row and returns tokens and accuracy of step 1."""
    model = _model(arguments)
    loss = resolve_loss_config("kl_div", "eager")
    transfer = FileTransfer(Path(arguments.data) / "hidden_states")
    data = ArrowDataset(1 << 20, Path(arguments.data) / "prepared", transfer=transfer, on_missing="raise")

    @torch.no_grad()
    def evaluate():
        tokens, hits, judged = 0, 0.0, 0.0
        for number in range(len(data)):
            sample = data[number]
            length = len(sample["input_ids"])
            collate = CollateFn(
                max_len=length - 1,  # as long as the shifted row: nothing is padded
                hidden_size=model.hidden_size,
                num_target_layers=len(model.target_layer_ids),
                preprocess=shift_batch,
            )
            batch = {key: value for key, value in collate([sample]).items() if torch.is_tensor(value)}
            _, _, metrics = model(**batch, ttt_steps=arguments.steps, loss_config=loss)
            tokens += length
            hits += float(metrics["full_acc_0_sum"])
            judged += float(metrics["full_acc_0_total"])
        return {"tokens": tokens, "accuracy": hits / judged}

    return evaluate


def _model(arguments):
    config = Eagle3SpeculatorConfig.from_pretrained(Path(arguments.data) / "drafter")
    config.transformer_layer_config._attn_implementation = "eager"
    config.speculators_config.verifier.name_or_path = str(arguments.target)
    model = Eagle3DraftModel.from_pretrained(Path(arguments.data) / "drafter", config=config)
    model.load_verifier_weights()
    return model.to(torch.bfloat16).eval()


main()
