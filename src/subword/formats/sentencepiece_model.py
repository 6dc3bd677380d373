"""What a SentencePiece `.model` file holds: the fields of `sentencepiece_model.proto`, with their defaults."""

from __future__ import annotations

import math

from ..errors import FormatError
from . import wire
from .wire import Field, Message

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Types of pieces."""

UNIGRAM, BPE, WORD, CHAR = 1, 2, 3, 4
"""Types of models."""

PIECE: wire.Table = {
    1: Field("piece", "string", ""),
    2: Field("score", "float", 0.0),
    3: Field("type", "int", NORMAL),
}

TRAINER: wire.Table = {
    1: Field("input", "string", repeated=True),
    2: Field("model_prefix", "string", ""),
    3: Field("model_type", "int", UNIGRAM),
    4: Field("vocab_size", "int", 8000),
    5: Field("accept_language", "string", repeated=True),
    6: Field("self_test_sample_size", "int", 0),
    7: Field("input_format", "string", ""),
    10: Field("character_coverage", "float", 0.9995),
    11: Field("input_sentence_size", "int", 0),
    12: Field("mining_sentence_size", "int"),
    13: Field("training_sentence_size", "int"),
    14: Field("seed_sentencepiece_size", "int", 1_000_000),
    15: Field("shrinking_factor", "float", 0.75),
    16: Field("num_threads", "int", 16),
    17: Field("num_sub_iterations", "int", 2),
    18: Field("max_sentence_length", "int", 4192),
    19: Field("shuffle_input_sentence", "bool", True),
    20: Field("max_sentencepiece_length", "int", 16),
    21: Field("split_by_unicode_script", "bool", True),
    22: Field("split_by_whitespace", "bool", True),
    23: Field("split_by_number", "bool", True),
    24: Field("treat_whitespace_as_suffix", "bool", False),
    25: Field("split_digits", "bool", False),
    26: Field("allow_whitespace_only_pieces", "bool", False),
    30: Field("control_symbols", "string", repeated=True),
    31: Field("user_defined_symbols", "string", repeated=True),
    32: Field("vocabulary_output_piece_score", "bool", True),
    33: Field("hard_vocab_limit", "bool", True),
    34: Field("use_all_vocab", "bool", False),
    35: Field("byte_fallback", "bool", False),
    36: Field("required_chars", "string", ""),
    40: Field("unk_id", "int", 0),
    41: Field("bos_id", "int", 1),
    42: Field("eos_id", "int", 2),
    43: Field("pad_id", "int", -1),
    44: Field("unk_surface", "string", " \u2047 "),
    45: Field("unk_piece", "string", "<unk>"),
    46: Field("bos_piece", "string", "<s>"),
    47: Field("eos_piece", "string", "</s>"),
    48: Field("pad_piece", "string", "<pad>"),
    49: Field("train_extremely_large_corpus", "bool", False),
    50: Field("enable_differential_privacy", "bool", False),
    51: Field("differential_privacy_noise_level", "float", 0.0),
    52: Field("differential_privacy_clipping_threshold", "int", 0),
    53: Field("pretokenization_delimiter", "string", ""),
    54: Field("seed_sentencepieces_file", "string", ""),
}

NORMALIZER: wire.Table = {
    1: Field("name", "string", ""),
    2: Field("precompiled_charsmap", "bytes", b""),
    3: Field("add_dummy_prefix", "bool", True),
    4: Field("remove_extra_whitespaces", "bool", True),
    5: Field("escape_whitespaces", "bool", True),
    6: Field("normalization_rule_tsv", "string", ""),
}

SAMPLE: wire.Table = {1: Field("input", "string", ""), 2: Field("expected", "string", "")}

MODEL: wire.Table = {
    1: Field("pieces", "message", repeated=True, table=PIECE),
    2: Field("trainer_spec", "message", table=TRAINER),
    3: Field("normalizer_spec", "message", table=NORMALIZER),
    4: Field("self_test_data", "message", table={1: Field("samples", "message", repeated=True, table=SAMPLE)}),
    5: Field("denormalizer_spec", "message", table=NORMALIZER),
}


def read(data: bytes) -> Message:
    """A model file, checked as SentencePiece checks it.

    Raises:
        FormatError: it is no such file, or contradicts itself.
    """
    model = wire.read(data, MODEL, "model")
    trainer = model.trainer_spec
    if not model.pieces:
        raise FormatError("the model has no pieces: this is no SentencePiece model")
    if trainer.model_type not in (UNIGRAM, BPE, WORD, CHAR):
        raise FormatError(f"unknown model type {trainer.model_type}")
    matched: dict[str, int] = {}  # what text can spell
    reserved: dict[str, int] = {}
    unknown: list[int] = []
    byte_pieces: set[str] = set()
    for id, piece in enumerate(model.pieces):
        text, kind = piece.piece, piece.type
        if not text:
            raise FormatError(f"piece {id} is empty")
        if kind not in (NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE):
            raise FormatError(f"piece {id}, {text!r}, has the unknown type {kind}")
        if not math.isfinite(piece.score):
            raise FormatError(f"the score of piece {id}, {text!r}, is {piece.score}")
        seen = matched if kind in (NORMAL, USER_DEFINED, UNUSED) else reserved
        if text in seen:
            raise FormatError(f"{text!r} is a piece twice, with the ids {seen[text]} and {id}")
        seen[text] = id
        if kind == UNKNOWN:
            unknown.append(id)
        elif kind == BYTE:
            if not trainer.byte_fallback:
                raise FormatError(f"piece {id}, {text!r}, is a byte, but the model has no byte fallback")
            byte_pieces.add(text)
    if len(unknown) != 1:
        raise FormatError(f"a model has one unknown piece; this one has {len(unknown)}")
    if trainer.byte_fallback:
        wanted = {byte_piece(byte) for byte in range(256)}
        if byte_pieces != wanted:
            odd = sorted(byte_pieces ^ wanted)
            raise FormatError(f"byte fallback needs the pieces <0x00> … <0xFF> and no others; {odd[0]!r} differs")
    return model


def byte_piece(byte: int) -> str:
    return f"<0x{byte:02X}>"


def write(model: Message) -> bytes:
    return wire.write(model)
