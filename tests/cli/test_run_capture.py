"""`run capture` from the laptop to the report, against a server that is up and returns what it is told to."""

import hashlib
import json
import sys
from pathlib import Path

import torch

from tests.support.answering_server import AnsweringServer, Reply
from tests.support.laptop import Laptop
from tests.support.sshd import running_sshd

TOKENS, WIDTH = 48, 8


def said(states: torch.Tensor) -> Reply:
    meta = {"hidden_states": [states.tolist()], "input_top_logprobs": [None, *[[[-0.1, 7, None]]] * (TOKENS - 1)]}
    body = json.dumps({"output_ids": [7], "meta_info": meta}).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    return Reply(raw=[(0.0, head + body)])


def test_the_states_of_a_running_server(tmp_path: Path) -> None:
    with running_sshd(tmp_path / "gpu1") as host, AnsweringServer() as server:
        draw = torch.Generator().manual_seed(4)
        captured = torch.randn(TOKENS, 4, WIDTH, generator=draw)
        rows = host.home / "rows"
        rows.mkdir()
        torch.save(
            {
                "input_ids": torch.randint(0, 90, (TOKENS,), generator=draw),
                "loss_mask": (torch.arange(TOKENS) > 9).to(torch.int64),
                "aux_hidden_state": captured[:, :3].reshape(1, TOKENS, -1),
                "hidden_state": captured[None, :, 3],
            },
            rows / "data_0.ckpt",
        )
        model = {"architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH, "vocab_size": 90, "num_hidden_layers": 8}
        (host.home / "target").mkdir()
        (host.home / "target" / "config.json").write_text(json.dumps(model), encoding="utf-8")
        server.info["model_path"] = str(host.home / "target")
        served = captured[:, (1, 2)].reshape(TOKENS, -1)
        heldout = {"input_ids": list(range(TOKENS - 1)), "n_prompt_tokens": TOKENS - 1}
        (host.home / "heldout.jsonl").write_text(json.dumps(heldout), encoding="utf-8")
        trained = {"input_ids": list(range(1, TOKENS)), "n_prompt_tokens": TOKENS - 1}
        (host.home / "trained.jsonl").write_text(json.dumps(trained), encoding="utf-8")
        server.replies = [said(served), said(served), said(served)]  # a row; a prompt's answer, and then its states
        (tmp_path / "laptop").mkdir()
        laptop = Laptop(tmp_path / "laptop")
        laptop.ssh.add_host("gpu1", host)
        laptop.toml.write_text(f'[hosts.gpu1]\nssh = "gpu1"\npython = "{sys.executable}"\n', encoding="utf-8")
        done = laptop.run(
            *("run", "capture", "--host", "gpu1", "--run-id", "fed", "--attach-url", server.url, "--rows", "~/rows"),
            *("--model", "~/target", "--states", "embed,2,4", "--trained", "embed,2"),
            *("--prompts", "~/trained.jsonl", "--heldout-prompts", "~/heldout.jsonl", "--ignore-eos"),
        )
        assert done.code == 0, done.err
        assert done.out.startswith("SGLang feeds [layer 2, layer 4]; the drafter was trained on [embed, layer 2]")
        assert "48 of 48" in done.out
        shown = json.loads(laptop.run("runs", "show", "fed", "--json").out)
        assert (shown["diagnosis"]["verdict"], shown["diagnosis"]["states"]) == ("other_states", [2, 4])
        made, *answers = shown["result"]["made"]
        assert [one["split"] for one in answers] == ["answered", "heldout"]
        for answered, prompt in zip(answers, (trained, heldout), strict=True):
            assert (Path(answered["folder"]).name, answered["rows"], answered["tokens"]) == (
                answered["split"],
                1,
                TOKENS,
            )
            (line,) = (Path(answered["folder"]) / "merged.jsonl").read_text(encoding="utf-8").splitlines()
            digest = hashlib.sha256(json.dumps(prompt["input_ids"]).encode()).hexdigest()[:12]
            assert json.loads(line)["source"] == f"prompt {digest} greedy"  # as a served benchmark calls it
            assert json.loads(line)["input_ids"][-1] == 7
            assert answered["answers"] == [{"prompt_sha256": digest, "output_ids": [7]}]
        assert [asked["sampling_params"].get("ignore_eos") for asked in server.asked] == [None, True, None, True, None]
        assert (made["split"], made["rows"], made["tokens"]) == ("train", 1, TOKENS)
        assert (Path(made["folder"]) / "hs_0.safetensors").is_file()
        assert "other-states" in laptop.run("runs", "list").out
        (host.home / "chat.jsonl").write_text('{"messages": [{"role": "user", "content": "Why?"}]}', encoding="utf-8")
        words = ("run", "capture", "--host", "gpu1", "--attach-url", server.url, "--model", "~/target")
        alone = laptop.run(*words, "--prompts", "~/chat.jsonl")
        assert (alone.code, "must hold `input_ids`, found messages" in alone.err) == (20, True), alone.err
        beside = laptop.run(*words, "--prompts", "~/chat.jsonl", "--rows", "~/rows", "--states", "embed,2,4")
        assert beside.code == 0, beside.err  # what is fed is known all the same
        assert beside.out.startswith("SGLang feeds [layer 2, layer 4]")
        assert "must hold `input_ids`, found messages" in " ".join(beside.out.split())
