"""What mends one choice of the computation that an engine makes otherwise than training did.

Which version of SGLang reads which flag: read in its releases 0.4.5 to 0.5.23, `llama_eagle3.py`. `norm_output` has
two meanings: SpecForge before its pull request 879 wrote it for "norm before lm_head", engines read it as feedback.
"""

from remote_payload.schema import CheckpointFacts

RETRAIN = "or train it again with the choice that SGLang makes"

_LINES: dict[tuple[str, str], tuple[str, ...]] = {
    ("residual", "normed"): (
        "SGLang never norms the residual and ignores `norm_before_residual`: serve with vLLM, whose config line is "
        '"norm_before_residual": true',
        'or train it again with "norm_before_residual": false',
    ),
    ("residual", "raw"): ('set in the drafter\'s config.json: "norm_before_residual": false',),
    ("feedback", "normed"): (
        'set in the drafter\'s config.json: "norm_output": true',
        "SGLang feeds the normed output to the next step from 0.5.12 on; older ones ignore the flag",
    ),
    ("feedback", "raw"): (
        'delete "norm_output" from the drafter\'s config.json, or set it: "norm_output": false',
        "SpecForge wrote it with another meaning (norm before lm_head); SGLang and vLLM feed the normed output to the "
        "next step where it is true",
    ),
    ("input_norm", "joint"): (
        'set in the drafter\'s config.json: "norm_before_fc": true',
        "SGLang norms the joined states before fc from 0.5.17 on; older ones ignore flag and weight",
    ),
    ("input_norm", "per_slot"): (
        'set in the drafter\'s config.json: "fc_norm": true',
        "SGLang norms each state before fc from 0.5.12 on; older ones ignore flag and weights",
    ),
    ("input_norm", "none"): ('set in the drafter\'s config.json: "norm_before_fc": false, "fc_norm": false',),
    ("final_norm", "none"): ("no engine leaves out the final norm before lm_head: the drafter must be trained again",),
    ("final_norm", "applied"): ("remove what tells the engine to leave out the final norm before lm_head",),
    ("windows", "kept"): (
        "SGLang ignores the drafter's `sliding_window`: `--speculative-draft-window-size` sets one for all layers",
        "or serve it with vLLM, or train it again without a window",
    ),
    ("windows", "none"): ('set in the drafter\'s config.json: "sliding_window": null',),
    ("embedding", "draft"): (
        "SGLang always uses the target's embedding; vLLM keeps the drafter's own where it differs: serve with vLLM",
        "or train it again with the target's embedding, frozen",
    ),
    ("embedding", "target"): (
        "delete embed_tokens.weight from the drafter's files: vLLM would use it, SGLang takes the target's anyway",
    ),
    ("vocabulary", "absolute"): (
        "d2t holds target ids, engines add them to the draft id: store offsets instead, "
        "`d2t = d2t - torch.arange(len(d2t))`, under the same name",
    ),
    ("vocabulary", "identity"): (
        "lm_head's rows are the first target ids in order, whatever d2t says: store zeros, "
        "`d2t = torch.zeros_like(d2t)`",
    ),
    ("vocabulary", "mended"): (
        "d2t is not the map that lm_head was trained with: export d2t and t2d again, from the run that trained it",
    ),
    ("vocabulary", "offset"): ("d2t is right as offsets: look at what makes the engine read it otherwise",),
    ("position_start", "1"): ("no flag sets where positions start: the drafter must be trained again from 0",),
    ("position_start", "0"): ("no flag sets where positions start; engines that count otherwise lose a little",),
}


def remedy(key: str, best: str, served: str, checkpoint: CheckpointFacts) -> tuple[str, ...]:
    """What to do, a line each, where `key` should be `best` and is served as `served`."""
    if key == "rope":
        return _rope(best, checkpoint)
    known = _LINES.get((key, best))
    return known if known else (f"no config line is known that makes `{key}` {best} instead of {served}", RETRAIN)


def _rope(best: str, checkpoint: CheckpointFacts) -> tuple[str, ...]:
    """Rotary parameters as config lines; `best` is a label such as `theta 1e+06`, `unscaled`, `target's`."""
    trained = "the value that it was trained with; a wrong one costs more the longer the context"
    if best.startswith("theta "):
        try:
            theta = float(best.removeprefix("theta "))
        except ValueError:
            return (f"set rope_theta in the drafter's config.json to {best.removeprefix('theta ')}, {trained}",)
        return (
            f'set in the drafter\'s config.json: "rope_theta": {theta!r}',
            f"{trained}; transformers 5 keeps it in `rope_parameters`, set it there as well if that key exists",
        )
    if best == "interleaved":
        return (
            "q_proj and k_proj are stored for pairs of neighbours, engines turn halves: re-order each head's rows, "
            "`w.view(heads, head_dim // 2, 2, -1).transpose(1, 2).reshape(w.shape)`, q_proj with num_attention_heads, "
            "k_proj with num_key_value_heads",
        )
    if best == "full":
        return (
            'delete "partial_rotary_factor" from the drafter\'s config.json (and from its `rope_parameters` or '
            "`rope_scaling`): it was trained with whole heads turned, the weights stay as they are",
        )
    if best == "unscaled":
        return ('set in the drafter\'s config.json: "rope_scaling": null', trained)
    if best == "target's":
        where = f"{checkpoint.target}/config.json" if checkpoint.target else "the target's config.json"
        return (f"copy rope_theta and rope_scaling (or rope_parameters) from {where} to the drafter's config.json",)
    return (f"give the drafter's config.json the rotary parameters `{best}`, {trained}",)
