"""Pure reports: a record in, text out; one file a format. Opens no file."""
