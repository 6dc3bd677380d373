"""Writing tokenizer.json, as `tokenizer_json.py` says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn, cast

from .. import bert
from .._core import same_in_both_syntaxes
from ..byte_alphabet import NEVER_IN_UTF8, spelled_bytes, to_alphabet
from ..errors import SubwordValueError, warn
from ..patterns import DIGITS, get_pattern
from ..spec import (
    BPE,
    Characters,
    CleanText,
    Decode,
    DecodeWordPiece,
    Decoding,
    Digits,
    ExtraToken,
    Lowercase,
    MatchTokens,
    Normalize,
    PadChinese,
    PrefixSpace,
    ScoreBPE,
    Spec,
    Split,
    SplitPunctuation,
    SplitRegex,
    Stage,
    StripAccents,
    Template,
    Unigram,
    WordLevel,
    WordPiece,
    Words,
)
from .rank_merges import merges_of_rank_model
from .tokenizer_json_read import (
    DIGITS_UNICODE,
    NORMALIZER_UNICODE,
    SPLIT_UNICODE,
    assigned_ids,
    can_be_a_word,
    comes_to_the_model,
    shared_problem,
    template_roles,
)
from .tokenizer_json_scored import document_of


def write(spec: Spec) -> bytes:
    """The file that makes tokenizers 0.23 give the ids that `spec` gives; the same spec gives the same bytes.

    Warns of roles that the file has no place for; notes are left out.

    Raises:
        SubwordValueError: the format cannot hold something of `spec`; the message names it.
    """
    if isinstance(spec.model, (Words, Characters)):
        _refuse(f"SentencePiece's {type(spec.model).__name__}")
    if not isinstance(spec.model, (Unigram, ScoreBPE)):
        _check_stages(spec)
    if isinstance(spec.model, (WordPiece, WordLevel)):
        return _written_word_piece(spec, spec.model)
    if isinstance(spec.model, (Unigram, ScoreBPE)):
        scored = document_of(spec, _refuse, _added_token, partial(_post_processor, spec.template))
        _warn_of_roles(spec)
        return (json.dumps(scored, ensure_ascii=False, indent=2) + "\n").encode()
    if not isinstance(spec.model, BPE):
        _refuse(f"a {type(spec.model).__name__}")
    model_vocab, merges = _model_vocab(spec), _merges(spec)
    added = sorted((token for token in spec.extra if token.kind != "unmatchable"), key=lambda token: token.id)
    names = {id: token for token, id in model_vocab.items()} | {token.id: token.content for token in spec.extra}
    vocab = _with_added_tokens(model_vocab, added)
    unk = spec.roles.get("unk", -1) if spec.model.unk is None else spec.model.unk
    merged = {name for left, right in merges for name in (names[left], names[right], names[left] + names[right])}
    for token in added:
        _check_added_token(token, vocab, model_vocab, merged, spec)
    _warn_of_roles(spec)
    document: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(token) for token in added],
        "normalizer": _normalizer(spec),
        "pre_tokenizer": _pre_tokenizer(spec),
        "post_processor": _post_processor(spec.template, names),
        "decoder": _decoder(spec),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": names.get(unk),
            "continuing_subword_prefix": None,
            "end_of_word_suffix": _bpe(spec).end_of_word or None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": _bpe(spec).ignore_merges,
            "vocab": dict(sorted(vocab.items(), key=lambda entry: entry[1])),
            "merges": [],
        },
    }
    return _dumped(document, [[names[left], names[right]] for left, right in merges])


def _written_word_piece(spec: Spec, model: WordPiece | WordLevel) -> bytes:
    model_vocab = {_text_of(piece, id): id for piece, id in model.vocab.items()}
    added = sorted((token for token in spec.extra if token.kind != "unmatchable"), key=lambda token: token.id)
    if len(added) < len(spec.extra):
        _refuse("unmatchable tokens of words: they would be tokens of the model")
    names = {id: token for token, id in model_vocab.items()} | {token.id: token.content for token in added}
    vocab = _with_added_tokens(model_vocab, added)
    rewriting = [stage for stage in spec.stages if not isinstance(stage, MatchTokens)]
    for token in added:
        listed, known = token.content in vocab, token.content in model_vocab
        is_special = token.kind == "special" and token.id != model.unk
        problem = None
        if known and is_special:
            problem = "special tokens leave the model there, and this one is an entry"
        elif listed and not known and token.kind == "added":
            problem = "listed in the vocabulary, as its id needs, it would also be a token of the model"
        elif listed and is_special and can_be_a_word(token, rewriting, rewriting):
            problem = "text that it is not taken from can become this word there"
        if problem is not None:
            _refuse(f"the token {token.content!r} (id {token.id}): {problem}")
    _warn_of_roles(spec)
    pieces: dict[str, Any] = {}
    if isinstance(model, WordPiece):
        pieces["continuing_subword_prefix"] = model.continuing_subword_prefix
        pieces["max_input_chars_per_word"] = model.max_input_chars_per_word
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(token) for token in added],
        "normalizer": _normalizer(spec),
        "pre_tokenizer": _pre_tokenizer(spec),
        "post_processor": _post_processor(spec.template, names),
        "decoder": _word_decoder(spec.decode),
        "model": {
            "type": type(model).__name__,
            "unk_token": names[model.unk],
            **pieces,
            "vocab": dict(sorted(vocab.items(), key=lambda entry: entry[1])),
        },
    }
    return (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()


def _text_of(piece: bytes, id: int) -> str:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        _refuse(f"the token {piece!r} (id {id}), which is not text")


def _word_decoder(decode: Decoding) -> dict[str, Any] | None:
    if decode == DecodeWordPiece(prefix="", cleanup=False):
        return None
    if decode == Decode():
        return {"type": "WordPiece", "prefix": "", "cleanup": False}
    if not isinstance(decode, DecodeWordPiece) or not decode.prefix:
        _refuse(f"a WordPiece with {decode!r}")
    return {"type": "WordPiece", "prefix": decode.prefix, "cleanup": decode.cleanup}


def _dumped(document: dict[str, Any], merges: list[list[str]]) -> bytes:
    """The document, indented, with one merge a line: `json` would take four lines for it."""
    tail = "[]\n  }\n}"
    text = json.dumps(document, ensure_ascii=False, indent=2).removesuffix(tail)
    rows = ",\n".join("      " + json.dumps(pair, ensure_ascii=False) for pair in merges)
    return (text + (f"[\n{rows}\n    ]\n  }}\n}}" if rows else tail) + "\n").encode()


def _bpe(spec: Spec) -> BPE:
    """The model, by those who are only asked of a BPE."""
    return cast("BPE", spec.model)


def _refuse(what: str) -> NoReturn:
    raise SubwordValueError(f"tokenizer.json cannot hold {what}; save as .subword instead")


def _check_stages(spec: Spec) -> None:
    """The stages must be those of tokenizers, in its order, and take from text the tokens that it takes."""
    order = [MatchTokens(), Normalize, MatchTokens(normalized=True), PrefixSpace, Split]
    alike: dict[type, type] = dict.fromkeys((Lowercase, CleanText, PadChinese, StripAccents), Normalize)
    alike |= dict.fromkeys((Digits, SplitRegex, SplitPunctuation), Split)
    kinds = [alike.get(type(stage), type(stage)) for stage in spec.stages]
    places = [order.index(s if k is MatchTokens else k) for s, k in zip(spec.stages, kinds, strict=True)]
    once = [place for place in places if order[place] not in (Normalize, Split)]
    if places != sorted(places) or len(set(once)) != len(once):
        _refuse(f"the stages {', '.join(map(repr, spec.stages))} in this order")
    for stage in spec.stages:
        if isinstance(stage, Lowercase) and stage.final_sigma:
            _refuse("lower case with final sigmas")
        if isinstance(stage, Lowercase) and stage != bert.LOWERCASE:
            _refuse(f"{stage!r}: tokenizers has {bert.LOWERCASE!r}")
        if isinstance(stage, (Normalize, Digits, Split, SplitRegex)):
            known = NORMALIZER_UNICODE if isinstance(stage, Normalize) else SPLIT_UNICODE
            if stage.unicode != known and stage != Digits("one", DIGITS_UNICODE):
                _refuse(f"Unicode {stage.unicode} in {stage!r}: tokenizers has {known} there")
    for token in spec.extra:
        if token.kind != "unmatchable" and MatchTokens(token.normalized) not in spec.stages:
            _refuse(f"the token {token.content!r} (id {token.id}) that no stage takes from text: tokenizers takes all")


def _warn_of_roles(spec: Spec) -> None:
    kept = template_roles(spec.template) | {"unk": spec.roles.get("unk")}
    lost = ", ".join(name for name, id in spec.roles.items() if kept.get(name) != id)
    if lost:
        text = f"tokenizer.json has no place for the roles {lost}; transformers keeps them in tokenizer_config.json"
        warn(text)


def _model_vocab(spec: Spec) -> dict[str, int]:
    """The model's entries and the unmatchable tokens, spelled as the file spells them."""
    if _bpe(spec).unit == "character":
        return _character_vocab(spec)
    vocab = {to_alphabet(piece): id for piece, id in spec.model.vocab.items()}
    missing = bytes(b for b in range(256) if b not in NEVER_IN_UTF8 and to_alphabet(bytes([b])) not in vocab)
    if missing:
        _refuse(f"a model without tokens for the bytes {missing!r}: tokenizers would drop them from text")
    for token in spec.extra:
        if token.kind == "unmatchable":
            if spelled_bytes(token.content) is not None:
                _refuse(f"the unmatchable token {token.content!r} (id {token.id}): it would spell bytes there")
            vocab[token.content] = token.id
    return vocab


def _character_vocab(spec: Spec) -> dict[str, int]:
    model = _bpe(spec)
    vocab: dict[str, int] = {}
    for piece, id in model.vocab.items():
        token = _text_of(piece, id)
        if not model.end_of_word or model.end_of_word in token.removesuffix(model.end_of_word):
            _refuse(f"characters without a marker at the ends of words, and only there: {token!r} (id {id})")
        vocab[token] = id
    for extra in spec.extra:
        if extra.kind == "unmatchable":
            _refuse(f"the unmatchable token {extra.content!r} (id {extra.id}): it would be a token of the model")
    return vocab


def _decoder(spec: Spec) -> dict[str, Any]:
    model = _bpe(spec)
    if model.unit == "character":
        if spec.decode != Decode(trim=True):
            _refuse(
                f"a model over characters with {spec.decode!r}: it decodes the end of a word to a space between words"
            )
        return {"type": "BPEDecoder", "suffix": model.end_of_word}
    if to_alphabet(model.end_of_word.encode()) != model.end_of_word:
        _refuse(f"the end-of-word marker {model.end_of_word!r} of a byte-level BPE: it is spelled otherwise there")
    if model.end_of_word and spec.decode != Decode(model.end_of_word):
        _refuse(f"a model over bytes with {spec.decode!r}: it decodes the end of a word to {model.end_of_word!r}")
    return _byte_level()


def _merges(spec: Spec) -> Sequence[Sequence[int]]:
    if _bpe(spec).priority == "merges":
        return cast("list[list[int]]", _bpe(spec).merges.tolist())
    try:
        return merges_of_rank_model(spec)
    except SubwordValueError as error:
        _refuse(f"these ranks: {error}")


def _with_added_tokens(vocab: dict[str, int], added: list[ExtraToken]) -> dict[str, int]:
    """`vocab` with the added tokens that would get other ids without it: all but those at the end, else all."""
    ids = [token.id for token in added]
    contents = [token.content for token in added]
    start = len(ids)
    while start > 0 and (start == len(ids) or ids[start - 1] + 1 == ids[start]):
        start -= 1
    listed = vocab | dict(zip(contents[:start], ids[:start], strict=True))
    if list(assigned_ids(listed.get, len(listed), contents)) == ids:
        return listed
    return vocab | dict(zip(contents, ids, strict=True))


def _check_added_token(
    token: ExtraToken, vocab: dict[str, int], model_vocab: dict[str, int], merged: set[str], spec: Spec
) -> None:
    """Nothing but the added token itself may give its id, unless `read` says that the model does."""
    model, problem = _bpe(spec), None
    piece = spelled_bytes(token.content) if model.unit == "byte" else token.content.encode()
    whole = (
        model.ignore_merges and piece is not None and comes_to_the_model(token, piece, model.end_of_word, spec.stages)
    )
    if model_vocab.get(token.content, token.id) != token.id:
        problem = f"the model spells its token {model_vocab[token.content]} the same way there"
    elif token.content in model_vocab and piece is not None:
        problem = shared_problem(token, piece, token.content in merged, whole)
    elif token.content in vocab and (whole or (piece is not None and model.ignore_merges and token.kind == "added")):
        problem = "listed in the vocabulary, as its id needs, it would also be a token of the model"
    if problem is not None:
        _refuse(f"the token {token.content!r} (id {token.id}): {problem}")


def _added_token(token: ExtraToken) -> dict[str, Any]:
    return {
        "id": token.id,
        "content": token.content,
        "single_word": token.single_word,
        "lstrip": token.lstrip,
        "rstrip": token.rstrip,
        "normalized": token.normalized,
        "special": token.kind == "special",
    }


def _normalizer(spec: Spec) -> dict[str, Any] | None:
    rewriting = [stage for stage in spec.stages if isinstance(stage, (Normalize, Lowercase, *_BERT))]
    steps: list[dict[str, Any]] = []
    while rewriting:
        found = _bert_normalizer(rewriting)
        step = rewriting.pop(0)
        if found is not None:
            del rewriting[: found[0] - 1]
            steps.append(found[1])
        elif isinstance(step, _BERT):
            _refuse("StripAccents without Normalize('NFD') before it")
        else:
            steps.append({"type": step.form if isinstance(step, Normalize) else "Lowercase"})
    if len(steps) > 1:
        return {"type": "Sequence", "normalizers": steps}
    return steps[0] if steps else None


_BERT = (CleanText, PadChinese, StripAccents)


def _bert_normalizer(stages: Sequence[Stage]) -> tuple[int, dict[str, Any]] | None:
    """How many of the stages a BertNormalizer is, and that, if the first are one."""
    strip: list[Stage] = [Normalize("NFD", NORMALIZER_UNICODE), StripAccents()]
    wanted: dict[str, list[Stage]] = {
        "clean_text": [CleanText()],
        "handle_chinese_chars": [PadChinese()],
        "strip_accents": strip,
        "lowercase": [bert.LOWERCASE],
    }
    at, step = 0, {"type": "BertNormalizer"} | dict.fromkeys(wanted, False)
    for name, part in wanted.items():
        if list(stages[at : at + len(part)]) == part:
            step[name] = True
            at += len(part)
    return (at, step) if any(isinstance(stage, _BERT) for stage in stages[:at]) else None


def _pre_tokenizer(spec: Spec) -> dict[str, Any] | None:
    kinds = (Digits, Split, SplitRegex, SplitPunctuation)
    cutting = [stage for stage in spec.stages if isinstance(stage, kinds) and stage != _WHOLE]
    prefix_space = PrefixSpace() in spec.stages
    by_bytes = isinstance(spec.model, BPE) and spec.model.unit == "byte"
    if isinstance(spec.model, (WordPiece, WordLevel)) and not cutting and not prefix_space:
        return None
    built_in = by_bytes and cutting[-1:] == [Split("gpt2", SPLIT_UNICODE)]
    if built_in:
        cutting.pop()
    only_digits = isinstance(spec.model, BPE) and all(isinstance(stage, Digits) for stage in cutting)
    if not by_bytes and (prefix_space or only_digits):
        _refuse("a model over characters with a space in front of the text, or without a split pattern")
    steps = [step for stage in cutting for step in _steps_of(stage)]
    if by_bytes:
        steps.append(_byte_level(prefix_space, use_regex=built_in))
    if len(steps) == 1:
        return steps[0]
    if prefix_space:
        _refuse(f"a space in front of the text together with the stage {cutting[0]!r}")
    return {"type": "Sequence", "pretokenizers": steps}


_WHOLE = Split("none", SPLIT_UNICODE)


def _steps_of(stage: Digits | Split | SplitRegex | SplitPunctuation) -> list[dict[str, Any]]:
    if isinstance(stage, SplitPunctuation):
        return [{"type": "BertPreTokenizer"}]
    if isinstance(stage, Digits) and stage.unicode == DIGITS_UNICODE:
        return [{"type": "Digits", "individual_digits": True}]
    drops = isinstance(stage, Split) and get_pattern(stage.pattern).drops
    fixed = {"behavior": "Removed" if drops else "Isolated", "invert": drops}
    return [{"type": "Split", "pattern": {"Regex": regex}, **fixed} for regex in _regexes(stage)]


def _regexes(stage: Digits | Split | SplitRegex) -> Sequence[str]:
    """The expressions of a stage, as tokenizers reads them."""
    if isinstance(stage, Digits):
        return [DIGITS[stage.grouping]]
    if isinstance(stage, Split):
        return get_pattern(stage.pattern).steps
    if stage.syntax != "oniguruma" and not same_in_both_syntaxes(stage.regex):
        _refuse(f"the split pattern {stage.regex!r}, which says something else in Oniguruma's syntax")
    return [stage.regex]


def _byte_level(add_prefix_space: bool = False, use_regex: bool = True) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True, "use_regex": use_regex}


def _post_processor(template: Template, names: dict[int, str]) -> dict[str, Any] | None:
    if template == Template():
        return None
    used = sorted({item for item in template.single + template.pair if isinstance(item, int)})
    return {
        "type": "TemplateProcessing",
        "single": _template_items(template, template.single, names),
        "pair": _template_items(template, template.pair, names),
        "special_tokens": {names[id]: {"id": names[id], "ids": [id], "tokens": [names[id]]} for id in used},
    }


def _template_items(template: Template, items: tuple[int | str, ...], names: dict[int, str]) -> list[dict[str, Any]]:
    return [_template_item(*row, names) for row in zip(items, template.types_of(items), strict=True)]


def _template_item(item: int | str, type_id: int, names: dict[int, str]) -> dict[str, Any]:
    if isinstance(item, str):
        return {"Sequence": {"id": item, "type_id": type_id}}
    return {"SpecialToken": {"id": names[item], "type_id": type_id}}
