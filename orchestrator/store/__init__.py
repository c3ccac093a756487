"""Runs, baselines and host notes on this laptop's disk; the one room that knows their layout."""

from orchestrator.store.store import RunSummary, Store

__all__ = ["RunSummary", "Store"]
