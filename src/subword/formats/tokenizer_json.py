"""tokenizer.json of HF tokenizers (0.23), as far as it is BPE over bytes, or over characters with an end of words, or
WordPiece, or WordLevel.

One JSON object. Read, with ids equal to that library's:

    version         "1.0"
    truncation      left out, with a warning, as it takes ids away; so is padding, which adds some
    added_tokens    [{id, content, single_word, lstrip, rstrip, normalized, special}]
    normalizer      null | NFC | NFD | NFKC | NFKD | Lowercase | BertNormalizer | Replace \\s+ by a space | Sequence of
                    these
    pre_tokenizer   ByteLevel | Sequence of Split(Regex, Isolated or Removed), WhitespaceSplit, Digits(individual), …
                    and then ByteLevel (Removed and inverted is the same as Isolated where the matches leave nothing
                    out; where they leave something out, only rows of `patterns.py` are known)
                    A WordPiece has BertPreTokenizer, WhitespaceSplit, Splits, Digits, a Sequence of these, or null
    post_processor  null | ByteLevel | TemplateProcessing | RobertaProcessing | BertProcessing | Sequence of these
    decoder         null | ByteLevel | WordPiece
    model           BPE: vocab {token: id}, merges [[left, right]] or ["left right"], ignore_merges, end_of_word_suffix;
                    unk_token, fuse_unk and byte_fallback change nothing where bytes are merged: all are known
                    WordPiece: vocab {token: id}, unk_token, continuing_subword_prefix, max_input_chars_per_word
                    WordLevel: vocab {token: id}, unk_token; all else is as with a WordPiece

A BPE over characters has WhitespaceSplit, BertPreTokenizer, Splits, Digits, or a Sequence of these for a pre_tokenizer,
a BPEDecoder, an end_of_word_suffix and an unk_token. To replace white space is accepted where the pieces drop it, so
that it changes no id; it is not kept.

Everything else is refused, by its JSON path. Tokens of `vocab` spell bytes in GPT-2's alphabet; one that does not is
`unmatchable` unless it is also an added token. An added token leaves the model's vocabulary (so that ordinary text
cannot give its id) unless the model itself needs it: a single byte; a token of the merges; with `ignore_merges`, any
that is not special. In a WordPiece, special ones leave it, but for the unknown token, and others stay.

tokenizers takes no id of an added token from the file: it gives it that of the `vocab` entry with the same content,
else the next free one. A file that says otherwise is refused, and writing lists tokens in `vocab` where that is needed.
"""

from __future__ import annotations

from .tokenizer_json_read import read
from .tokenizer_json_write import write

__all__ = ["LIMITS", "PARTS", "looks_like", "read", "write"]

PARTS = {
    "pieces": "model.vocab, the keys, in GPT-2's byte alphabet; or as they are, where units are characters",
    "ids": "model.vocab, the values; added_tokens[].id",
    "merges": "model.merges, pairs of tokens, the first merges first; model.ignore_merges, model.end_of_word_suffix",
    "pattern": "pre_tokenizer, Split with a regular expression, or ByteLevel with use_regex (gpt2); Digits before it",
    "normalization": "normalizer, lower case too; pre_tokenizer.add_prefix_space",
    "extra tokens": "added_tokens, with their flags; unmatchable ones only in model.vocab",
    "template": "post_processor",
    "roles": "only what the template (bos, eos) and model.unk_token say; the rest stands in tokenizer_config.json",
    "notes": None,
}
LIMITS = (
    "ranks that no merge list can stand for; a model without tokens for all bytes of UTF-8; stages in another order or "
    "of other Unicode versions; lower case with final sigmas; characters without an end-of-word marker; a prefix space "
    "with a pattern other than gpt2; tokens spelled like others"
)


def looks_like(data: bytes) -> bool:
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
