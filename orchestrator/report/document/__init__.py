"""A report on one run or on many, before it has a format: sections of texts, tables and charts."""
