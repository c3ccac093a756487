"""Captured rows against a fresh forward of the target: a broken capture scores well offline and fails in serving."""
