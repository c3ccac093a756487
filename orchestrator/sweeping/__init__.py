"""Sweeps from the laptop: plan -> launch -> (the laptop may leave) -> ask -> collect -> go on with another.

The sweep is one run of its host, and so is each of its units: what holds for runs holds for them.
"""
