"""Pure comparison: figures from hits, statistics, differences, baselines. Opens no file."""
