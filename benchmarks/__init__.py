"""What measures the project itself against its peers: `python -m benchmarks --help`. Never part of the tests."""
