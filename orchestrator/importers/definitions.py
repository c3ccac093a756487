"""What other tools count, in words, where it is not what this tool counts (`orchestrator/compare/definitions.py`)."""

SERVER_AVERAGE = "accepted tokens / verify steps of the server's rank 0 since its start or last flush, bonus token in"
MACRO = "completion tokens / verify steps of a request, bonus token in, mean over requests"
SERVER_COUNTERS = "1 + accepted drafts / drafts of the server's counters during the benchmark, bonus token in"
LOG_INTERVALS = "accepted tokens / verify steps of a decode log line, bonus token in, mean over lines"
LOG_THROUGHPUT = "generated tokens / seconds of a decode log line, median over lines with as many running requests"
LOG_RATE = "accepted drafts / drafts of a decode log line, bonus token left out, mean over lines"
LOG_RATE_OLD = "accepted tokens with the bonus token / draft tokens of a decode log line, mean over lines"
SGLANG_OUTPUT = "output tokens / seconds from the first send to the answer of a last question to the server"
SGLANG_TOTAL = "prompt and output tokens / seconds from the first send to the answer of a last question to the server"
SGLANG_REQUESTS = "answered requests / seconds from the first send to the answer of a last question to the server"
SGLANG_TPOT = "(seconds of a request - its TTFT) / (output tokens - 1), {summary} over requests"
SGLANG_ITL = "gap between chunks, divided by the chunk's tokens where the backend tells them, {summary} over tokens"
SPECFORGE_OUTPUT = "output tokens / seconds of all requests of SpecForge's client"
VLLM_OUTPUT = "output tokens / seconds of the benchmark, by vLLM's client"
VLLM_TOTAL = "prompt and output tokens / seconds of the benchmark, by vLLM's client"
VLLM_REQUESTS = "answered requests / seconds of the benchmark, by vLLM's client"
VLLM_ITL = "gap between chunks, not divided by their tokens, {summary} over chunks"
SUMMARIES = {"mean": "mean", "median": "median", "p90": "90th percentile", "p95": "95th percentile",
             "p99": "99th percentile"}  # fmt: skip
SUFFIXES = {"": "median", "_mean": "mean", "_p90": "p90", "_p95": "p95", "_p99": "p99"}
"""After a metric's name: which summary it is."""
