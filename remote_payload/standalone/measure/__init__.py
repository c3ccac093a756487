"""From drafts to hits: what counts as one, which readings are tried, and where the hits are kept."""
