"""Stands where SGLang would be installed: what runs and reads it needs files of these names only."""
