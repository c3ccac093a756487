import dataclasses
import sys
from pathlib import Path

import pytest

from remote_payload.schema.bench_job import BenchJob
from remote_payload.sglang_bench.installed import auto_steps, facts_from, installed_sglang

NEW_HOOK = """
def _handle(args):
    if args.max_running_requests is None:
        args.max_running_requests = 48
        logger.warning("Max running requests is reset to 48 for speculative decoding. You can override this")
    if args.topk == 1:
        logger.warning("speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when topk == 1")

def _auto_choose_speculative_params(args, model_arch):
    if args.speculative_algorithm == "STANDALONE":
        return (3, 1, 4)
    if model_arch in ["LlamaForCausalLM"]:
        return (5, 4, 8)
    elif model_arch == "GptOssForCausalLM":
        return (3, 1, 4)
    else:
        return (2, 1, 3)
"""
OLD_ARGUMENTS = """
class ServerArgs:
    def __post_init__(self):
        pass

def auto_choose_speculative_params(self, arch):
    if arch in ("LlamaForCausalLM",):
        return (5, 4, 8)
    return (5, 4, 8)
"""
OLD_ADJUSTMENT = """
            if (
                self.speculative_eagle_topk == 1
                and self.speculative_num_draft_tokens != self.speculative_num_steps + 1
            ):
                logger.warning("speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when topk == 1")
                self.max_running_requests = 48
                self.speculative_num_draft_tokens = self.speculative_num_steps + 1
"""


def test_a_new_package() -> None:
    facts = facts_from(
        "0.5.23",
        "/venv/sglang",
        {
            "srt/arg_groups/speculative_hook.py": NEW_HOOK,
            "srt/managers/tokenizer_manager.py": 'meta_info["spec_correct_drafts_histogram"] = x',
            "benchmark/serving.py": "",
            "bench_serving.py": "",
        },
    )
    assert (facts.version, facts.forces_draft_tokens, facts.running_requests_cap) == ("0.5.23", True, 48)
    assert facts.returns_histogram == "spec_correct_drafts_histogram"
    assert facts.bench_module == "sglang.benchmark.serving"
    table = {
        steps.target_class: (steps.num_steps, steps.eagle_topk, steps.num_draft_tokens) for steps in facts.auto_steps
    }
    assert table == {"LlamaForCausalLM": (5, 4, 8), "GptOssForCausalLM": (3, 1, 4), None: (2, 1, 3)}


def test_an_old_package() -> None:
    files = {"srt/server_args.py": OLD_ARGUMENTS, "bench_serving.py": "", "version.py": '__version__ = "0.4.5"\n'}
    facts = facts_from(None, None, files)
    assert (facts.version, facts.forces_draft_tokens, facts.running_requests_cap) == ("0.4.5", False, None)
    assert (facts.returns_histogram, facts.bench_module) == (None, "sglang.bench_serving")
    assert [(steps.target_class, steps.num_steps) for steps in facts.auto_steps] == [("LlamaForCausalLM", 5), (None, 5)]


def test_an_old_package_that_forces_draft_tokens() -> None:
    """0.4.9 and 0.5.3: the chooser has no underscore yet."""
    facts = facts_from(
        "0.4.9", None, {"srt/server_args.py": f"class A:\n  def b(self):\n{OLD_ADJUSTMENT}{OLD_ARGUMENTS}"}
    )
    assert (facts.forces_draft_tokens, facts.running_requests_cap) == (True, 48)


@pytest.mark.parametrize(
    "source",
    [
        f"def _auto_choose_speculative_params(a):\n    x = {'-' * 100_000}1\n    return (3, 1, 4)\n",
        f"def _auto_choose_speculative_params(a):\n    x = {'(' * 300}1{')' * 300}\n    return (3, 1, 4)\n",
        "def _auto_choose_speculative_params(a):\n    return ('a', None, 4)\n",
        "\0",
    ],
)
def test_a_source_that_no_parser_takes_says_nothing(source: str) -> None:
    assert facts_from("9", "/x", {"srt/server_args.py": source}).auto_steps == ()


def test_unknown_sources_are_unknown() -> None:
    facts = facts_from("9.9", "/x", {"srt/server_args.py": "def broken(:"})
    assert (facts.forces_draft_tokens, facts.auto_steps, facts.bench_module) == (None, (), None)
    assert auto_steps("def _auto_choose_speculative_params(a):\n    return pick(a)\n") == ()


def test_the_package_is_read_and_never_imported(tmp_path: Path) -> None:
    package = tmp_path / "sglang"
    (package / "srt" / "arg_groups").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "version.py").write_text('__version__ = "0.5.99"\n')
    (package / "srt" / "arg_groups" / "speculative_hook.py").write_text(NEW_HOOK)
    job = BenchJob(model="/m", server_python=sys.executable, exec_prefix=("env", f"PYTHONPATH={tmp_path}"))
    facts = installed_sglang(job)
    assert (facts.version, facts.path, facts.forces_draft_tokens) == ("0.5.99", str(package), True)
    assert facts.simulates_acceptance is False
    faked = dataclasses.replace(job, server_environment=("SGLANG_SIMULATE_ACC_LEN=3.5",))
    assert installed_sglang(faked).simulates_acceptance is True


def test_no_package_and_no_python() -> None:
    assert installed_sglang(BenchJob(model="/m", server_python="/nowhere/python")).version is None
    assert installed_sglang(BenchJob(model="/m", exec_prefix=("false",))).path is None
