"""The drafter's computation, many readings of it at once."""
