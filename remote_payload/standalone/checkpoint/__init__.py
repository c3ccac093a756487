"""A drafter's folder and its target's: which dialect, which tensors, which computation, what SGLang makes of it."""
