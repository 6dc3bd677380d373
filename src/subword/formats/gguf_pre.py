"""How text is split before a BPE of GGUF: what the names in `tokenizer.ggml.pre` mean.

llama.cpp knows each name (`src/llama-vocab.cpp`, `llama_vocab::impl::load`, 2026) with an expression, or several that
cut one after the other, and with settings that go for the model where the file does not say otherwise. The expressions
here are those that the models were published with, of which llama.cpp has adapted some to its regular expressions.

To add one: its name in a row of `ROWS`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..patterns import pattern_of
from ..spec import Split, SplitRegex, Stage


class Pre(NamedTuple):
    """Names with the same meaning.

    Attributes:
        pattern: a row of `patterns.py`, or expressions of HF's syntax.
        ignore_merges: a piece that is an entry as a whole is that entry.
        add_bos, add_sep: what goes around texts, where the file does not say it.
    """

    names: tuple[str, ...]
    pattern: str | tuple[str, ...]
    ignore_merges: bool = False
    add_bos: bool = False
    add_sep: bool = False

    @property
    def stages(self) -> tuple[Stage, ...]:
        if isinstance(self.pattern, str):
            return (Split(self.pattern),)
        row = pattern_of(*self.pattern)
        return (Split(row.name),) if row is not None else tuple(SplitRegex(step, "oniguruma") for step in self.pattern)


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN2 = rf"{_CONTRACTION}|{_LETTERS}|\p{{N}}|{_MARKS}|{_SPACES}"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_CONTRACTION}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_CONTRACTION}?"
)
_LETTERS_OF_TWO_CASES = (  # with escapes, as some would not survive normalization
    r"A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
    r"\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"
    r"\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    r"\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d"
    r"\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
    r"\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    r"\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    r"\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a"
    r"\uff41-\uff5a\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}"
    r"\x{118a0}-\x{118df}\x{1e900}-\x{1e943}"
)
_MARKS_OF_ASIA = r"!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002"
_CJK = r"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_WORDS = r" ?[^(\s|.,!?…。，、।۔،)]+"

DEFAULT = "default"

ROWS = (
    Pre(
        (*("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"),),
        "llama3",
        ignore_merges=True,
        add_bos=True,
    ),
    Pre(("smaug-bpe", "dbrx", "glm4", "chatglm-bpe"), "llama3"),
    Pre(
        (
            *("gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum"),
            *("modern-bert", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4"),
        ),
        "gpt2",
    ),
    Pre(("roberta-bpe", "jina-v1-en", "jina-v2-code"), "gpt2", add_sep=True),
    Pre(
        ("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"),
        "starcoder",
    ),
    Pre(
        (
            *("qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "hunyuan", "megrez", "solar-open"),
            *("grok-2",),
        ),
        "qwen2",
    ),
    Pre(("qwen35",), "qwen3.5"),
    Pre(("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"), "o200k"),
    Pre(("granite-embed-multi-97m",), "o200k", ignore_merges=True),
    Pre(("tekken",), "tekken", ignore_merges=True, add_bos=True),
    Pre(("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), "deepseek-v3"),
    Pre(
        ("deepseek-llm",),
        (
            "[\r\n]",
            rf"\s?[{_LETTERS_OF_TWO_CASES}]+",
            r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
            r"\s+$",
            _CJK,
            r"\p{N}+",
        ),
    ),
    Pre(("deepseek-coder",), ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, r"\p{N}")),
    Pre(("falcon",), (r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")),
    Pre((DEFAULT,), (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    Pre(("bloom", "poro-chat", "gpt3-finnish"), (_WORDS,)),
    Pre(("viking",), (_WORDS, r"\p{N}")),
    Pre(
        ("bailingmoe", "bailingmoe2", "llada-moe"),
        (rf"'(?i:[sdmt]|ll|ve|re)|{_LETTERS}|\p{{N}}|{_MARKS}|\s*[\r\n]|\s+(?!\S)|\s+",),
    ),
    Pre(("seed-coder",), (rf"{_CONTRACTION}|{_LETTERS}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}",)),
    Pre(("ufakzeka",), (rf"{_LETTERS}|\p{{N}}|{_MARKS}|{_SPACES}",)),
    Pre(("laguna",), (r"[^\n]+|[\n]+", _QWEN2)),
    Pre(
        ("minicpm5",),
        (r"\p{N}{1,3}", rf"{_CONTRACTION}|{_LETTERS}|\p{{N}}+|{_MARKS}|{_SPACES}"),
        ignore_merges=True,
    ),
    Pre(
        ("exaone-moe",),
        (
            rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
        ),
    ),
    Pre(
        ("youtu",),
        (
            "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
            rf"{_O200K}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}",
        ),
        ignore_merges=True,
    ),
    Pre(("kimi-k2",), "kimi"),
)

BY_NAME = {name: row for row in ROWS for name in row.names}

OTHERS = (
    *("afmoe", "chameleon", "cohere2moe", "gemma4", "granite-embed-multi-311m", "jais-2", "sarvam-moe", "spark2_5"),
    *("superbpe", "tiny_aya", "whitespace"),
)
"""Names that llama.cpp knows besides, whose rules cannot be run here as they stand."""
