"""Runs, baselines and host notes on this laptop's disk; the one room that knows their layout."""

from orchestrator.store.store import Store
from orchestrator.store.summary import RunSummary

__all__ = ["RunSummary", "Store"]
