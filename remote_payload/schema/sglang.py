"""Target classes by SGLang's rule for EAGLE-3 layer ids: what payload and laptop must agree on to read and spell ids.

Source: SGLang 0.5.23, `set_eagle3_layers_to_capture` of each model.
"""

# Ids are used as they are unless the first is 1, which adds one to all (deepseek_v2.py, and what delegates to it).
DEEPSEEK_CLASSES = frozenset(
    {
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "KimiK25ForConditionalGeneration",
    }
)
# One is added to every id.
PLAIN_CLASSES = frozenset(
    {
        "ApertusForCausalLM",
        "BailingMoeForCausalLM",
        "BailingMoeV2ForCausalLM",
        "Gemma3ForCausalLM",
        "Gemma3ForConditionalGeneration",
        "Glm4MoeForCausalLM",
        "Llama4ForConditionalGeneration",
        "LlamaForCausalLM",
        "LongcatFlashForCausalLM",
        "MiniMaxM2ForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen2MoeForCausalLM",
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen3VLForConditionalGeneration",
        "Qwen3VLMoeForConditionalGeneration",
    }
)
