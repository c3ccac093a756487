"""What the rows hold and what the story serves. HF hidden_states indices: 0 = embedding."""

STATES = (0, 2, 4, 5)
"""The captured states of the bundled rows: [embedding output, layer a, layer b, layer c]."""

DRAFTER = "drafter_std"
"""Trained on states 2, 4, 5. Few rows tell these from every other choice; the other drafter's states they do not."""

STORY_IDS = (-1, 1, 3)
"""The config of the story: SGLang turns these into states 0, 2, 4; the drafter was trained on 2, 4, 5."""
