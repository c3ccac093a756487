"""Housekeeping under the tool's root: what may go, what it frees, and taking it away whole or not at all."""
