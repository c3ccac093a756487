"""Captured rows: every data dialect to one `Row`, and what the rows say about themselves."""
