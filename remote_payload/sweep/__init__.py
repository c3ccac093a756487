"""A sweep on the host: its units one after the other, each an ordinary run, and what became of every point."""
