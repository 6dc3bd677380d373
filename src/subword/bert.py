"""BERT's basic tokenization as stages: what is done to text before it is cut into words, and how it is cut.

HF tokenizers has it as BertNormalizer and BertPreTokenizer; BERT's own files know two kinds, cased and uncased.
"""

from __future__ import annotations

from typing import NamedTuple

from .spec import CleanText, Lowercase, Normalize, PadChinese, SplitPunctuation, Stage, StripAccents

SPLIT = SplitPunctuation()

LOWERCASE = Lowercase(final_sigma=False, unicode="17.0")
"""As HF tokenizers has it, which asks the Rust library."""

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""BERT's names of its special tokens."""


class Cleaning(NamedTuple):
    """What is done to text before it is cut."""

    lowercase: bool
    strip_accents: bool
    pad_chinese: bool = True

    @property
    def stages(self) -> tuple[Stage, ...]:
        stages: list[Stage] = [CleanText()]
        if self.pad_chinese:
            stages.append(PadChinese())
        if self.strip_accents:
            stages += [Normalize("NFD"), StripAccents()]
        if self.lowercase:
            stages.append(LOWERCASE)
        return tuple(stages)


CLEANINGS = {"bert-uncased": Cleaning(True, True), "bert-cased": Cleaning(False, False)}
"""By the names that stand for them where others give a split pattern."""
