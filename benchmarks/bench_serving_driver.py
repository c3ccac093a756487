"""SGLang's `bench_serving` as a process of its own, unchanged; under a Python that has SGLang. Tried with 0.5.23.

    PYTHON bench_serving_driver.py OPTIONS OF ITS OWN

Its clock of the CPU is read where its first request is made and where the last answer is there, which its own result
does not tell; and the throughput by our definition, first sending to last token, beside its own, whose clock stops
after a look at the server. Adds a line of JSON to what it prints.
"""

import json
import sys
import time

from sglang.benchmark import serving

found = {}
get_request, calculate_metrics = serving.get_request, serving.calculate_metrics


def begun(*arguments, **named):
    """Where its measured requests begin."""
    found["cpu_s"] = -time.process_time()
    return get_request(*arguments, **named)


def ended(*arguments, **named):
    """Where they are over: before it retokenises the answers and draws up its table."""
    found["cpu_s"] += time.process_time()
    outputs = named["outputs"]
    failed = [output.error for output in outputs if not output.success]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(outputs)} requests failed: {failed[0]}")
    found["seconds"] = max(output.start_time + output.latency for output in outputs) - min(
        output.start_time for output in outputs
    )
    found["tokens"] = sum(output.output_len for output in outputs)
    found["cached_tokens"] = sum(output.cached_tokens for output in outputs)
    found["prompt_tokens"] = [output.prompt_len for output in outputs]
    before_s = time.process_time()
    metrics = calculate_metrics(*arguments, **named)
    found["metrics_cpu_s"] = time.process_time() - before_s
    found["its_tok_s"] = metrics[0].output_throughput
    return metrics


serving.get_request, serving.calculate_metrics = begun, ended
serving.cli_main()
print(json.dumps(found))
sys.stdout.flush()
