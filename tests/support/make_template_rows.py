"""Make `tests/golden/template/rows.json`: conversations through real chat templates of the bundled target's tokenizer.

.sglang-venv/bin/python -m tests.support.make_template_rows    # needs transformers
"""

import json
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer  # type: ignore[import-not-found,unused-ignore] # of SGLang's environment

HERE = Path(__file__).parents[1]
TOKENIZER = HERE / "sglang" / "data" / "target"
OUT = HERE / "golden" / "template" / "rows.json"
ANSWER = "raise KeyError(name)"
CONVERSATIONS: tuple[list[dict[str, str]], ...] = (
    [{"role": "user", "content": "    def get(self, name):\n        return self._dict[name]\n"}],
    [
        {"role": "user", "content": "class Error(Exception):\n    pass\n"},
        {"role": "assistant", "content": "return None"},
        {"role": "user", "content": "import os\n\ndef path(name):\n"},
    ],
)
TURNS = (
    "{% for m in messages %}{% if m['role']=='user' %}<|user|>{{ m['content'] }}<|end|>"
    "{% elif m['role']=='assistant' %}<|assistant|>{{ m['content'] }}<|end|>"
    "{% elif m['role']=='system' %}<|end|>{{ m['content'] }}<|end|>{% endif %}{% endfor %}"
)
END = "{% if add_generation_prompt %}<|assistant|>{% endif %}"
TEMPLATES = {
    "same": "{{ bos_token }}" + TURNS + END,
    "bos_doubled": "{{ bos_token }}{{ bos_token }}" + TURNS + END,
    "bos_missing": TURNS + END,
    "system_prompt": "{{ bos_token }}<|end|>You are a helpful assistant.<|end|>" + TURNS + END,
    "no_generation_prompt": "{{ bos_token }}" + TURNS,
    "thinking": "{{ bos_token }}" + TURNS + END + "{% if add_generation_prompt %}<think>\n\n</think>\n\n{% endif %}",
    "other_turns": "{{ bos_token }}" + TURNS.replace("<|user|>", "Human: ") + END,
}


def main() -> None:
    """Render, and write."""
    tokenizer: Any = AutoTokenizer.from_pretrained(str(TOKENIZER))

    def ids(template: str, messages: list[dict[str, str]]) -> list[int]:
        text = tokenizer.apply_chat_template(
            messages, chat_template=template, add_generation_prompt=True, tokenize=False
        )
        return list(tokenizer.encode(text, add_special_tokens=False))

    answer = list(tokenizer.encode(f"{ANSWER}<|end|>", add_special_tokens=False))
    served = {name: [ids(template, one) for one in CONVERSATIONS] for name, template in TEMPLATES.items()}
    seen = sorted({token for some in served.values() for one in some for token in one} | set(answer))
    texts = {str(token): tokenizer.decode([token], skip_special_tokens=False) for token in seen}
    value = {"conversations": CONVERSATIONS, "answer": answer, "served": served, "texts": texts}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(value, ensure_ascii=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
