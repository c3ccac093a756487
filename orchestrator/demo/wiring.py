"""What the bundled drafter was trained on and what the story serves it. HF hidden_states indices: 0 = embedding."""

STATES = (0, 2, 4, 5)
"""The captured states of the bundled rows: [embedding output, layer a, layer b, layer c]."""

STORY_IDS = (1, 3, 4)
"""The config of the story: SGLang turns these into states 2, 4, 5; the drafter was trained on 0, 2, 4."""
