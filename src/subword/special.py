"""Special tokens by what they are for: the names that model families gave them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .errors import SubwordValueError


class Fim(NamedTuple):
    """The three tokens that mark the parts of a text whose middle is to be filled in."""

    prefix: str
    suffix: str
    middle: str


LLAMA3_TOKENS = (
    *("<|begin_of_text|>", "<|end_of_text|>", *(f"<|reserved_special_token_{i}|>" for i in range(4))),
    *("<|start_header_id|>", "<|end_header_id|>", "<|reserved_special_token_4|>", "<|eot_id|>"),
    *(f"<|reserved_special_token_{i}|>" for i in range(5, 251)),
)
"""The 256 special tokens of Llama 3 in the order of their ids: most of them are reserved for later use."""

FIM_TOKENS = (
    Fim("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # OpenAI's cl100k and p50k_edit, Qwen, CodeGemma
    Fim("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, SantaCoder's successors
    Fim("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    Fim("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # DeepSeek
)
"""Fill-in-the-middle tokens of known families. The first row of which a tokenizer has all three is used."""


WHISPER_LANGUAGES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml "
    "cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am "
    "yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue"
).split()
"""In the order of their tokens. The last came with large-v3."""


def whisper_tokens(languages: int, first: int = 50257) -> dict[str, int]:
    """The special tokens of Whisper's models of 99 languages, or of 100 (large-v3), with their ids from `first` on.

    Raises:
        SubwordValueError: there are no models of so many languages.
    """
    if languages not in (99, 100):
        raise SubwordValueError(f"Whisper has models of 99 and of 100 languages, not of {languages!r}")
    names = ["endoftext", "startoftranscript", *WHISPER_LANGUAGES[:languages], "translate", "transcribe", "startoflm"]
    names += ["startofprev", "nospeech", "notimestamps", *(f"{i * 0.02:.2f}" for i in range(1501))]
    return {f"<|{name}|>": id for id, name in enumerate(names, first)}


def find_fim(ids: Mapping[str, int]) -> Fim:
    """The fill-in-the-middle tokens among the extra tokens of a tokenizer.

    Raises:
        SubwordValueError: there are none; the message says how to add them.
    """
    for row in FIM_TOKENS:
        if all(token in ids for token in row):
            return row
    raise SubwordValueError(
        "this tokenizer has no fill-in-the-middle tokens that are known; for a model that is yet to learn them, add "
        f"some: tok.with_tokens(special={list(FIM_TOKENS[0])})"
    )
