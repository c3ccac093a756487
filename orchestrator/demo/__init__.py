"""The demonstration: an embedded SSH server on loopback and a small drafter of the story's kind."""
