"""The laptop's half of eagle3-remote: ships the payload, follows the run, stores, compares and reports."""

__version__ = "0.1.0"
