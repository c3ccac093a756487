"""Sweeps, planned and judged on the laptop: file -> points -> units -> what became of each. Pure."""
