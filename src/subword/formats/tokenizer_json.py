"""tokenizer.json of HF tokenizers (0.23): every part of it, in Sequences nested at will.

One JSON object. Read, with ids and decoded text equal to that library's:

    version         "1.0"
    truncation, padding   the defaults of `encode_padded`; no other call cuts or pads (`tokenizer_json_padding.py`)
    added_tokens    [{id, content, single_word, lstrip, rstrip, normalized, special}]   (`tokenizer_json_added.py`)
    normalizer      null | BertNormalizer | Strip | StripAccents | NFC … | Nmt | Precompiled | Replace | Prepend |
                    Lowercase | ByteLevel | Sequence   (`tokenizer_json_normalizers.py`, a row each)
    pre_tokenizer   null | BertPreTokenizer | ByteLevel | CharDelimiterSplit | Digits | FixedLength | Metaspace |
                    Punctuation | Split | UnicodeScripts | Whitespace | WhitespaceSplit | Sequence
                    (`tokenizer_json_splits.py`)
    post_processor  null | ByteLevel | TemplateProcessing | RobertaProcessing | BertProcessing | Sequence
                    (`tokenizer_json_templates.py`)
    decoder         null | BPEDecoder | ByteFallback | ByteLevel | CTC | Fuse | Metaspace | Replace | Strip |
                    WordPiece | Sequence   (`tokenizer_json_decoders.py`)
    model           BPE | WordPiece | WordLevel | Unigram   (`tokenizer_json_models.py`)

A BPE whose last pre-tokenizer writes bytes as text, and that has a token for each byte, is one over bytes; one that
falls back to all bytes is SentencePiece's (`ScoreBPE`); any other is one over characters. Decoders that a quicker way
stands for become that way.

Refused, by its JSON path: what is none of these; a template that does not hold each text once; a Unigram or a model of
words without an unknown token, which tokenizers cannot encode every text with; a Unigram that falls back to some bytes
only; an added token spelled like other bytes of the model; an expression that our engines do not run.

Not as in tokenizers: special tokens leave the model (a merge that joins or makes one is left out, with a warning), so
that ordinary text can never give their ids; `dropout` is left out, with a warning, as `encode` draws nothing; of
ill-formed UTF-8, `decode` makes what Python makes of it.

tokenizers takes no id of an added token from the file: it gives it that of the `vocab` entry with the same content,
else the next free one. So it is here, with a warning where the file says otherwise; writing lists tokens in `vocab`
where that is needed.
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
    "ranks that no merge list can stand for; a model over bytes without tokens for all of UTF-8; stages in another "
    "order or of other Unicode versions; lower case with final sigmas; a prefix space with a pattern other than gpt2; "
    "tokens spelled like others"
)


def looks_like(data: bytes) -> bool:
    return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
