"""vocab.txt, the file of BERT: an entry a line, and the number of the line, from 0, is its id.

    file = (entry "\\n")*          entries that continue a word start with "##"; "[UNK]" is among them

It says neither how text is cleaned before it is cut into words, nor which entries are special. The first the caller
says (`pattern="bert-uncased"` or `"bert-cased"`), or it is known for Google's own files by their SHA-256, or it stands
in the `tokenizer_config.json` of transformers beside the file (do_lower_case, strip_accents, tokenize_chinese_chars).
Special are, unless the caller says others, those of BERT's names that are entries.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping

from ..bert import CLEANINGS, CLS, PAD, SEP, SPECIALS, SPLIT, UNK, Cleaning
from ..errors import SubwordValueError, warn
from ..spec import DecodeWordPiece, ExtraToken, MatchTokens, Spec, SplitRegex, Template, Vocab, WordPiece
from .bare import Input, LeftOutError, checked_special_tokens, refuse
from .json_node import Node, parse, shown

KIND = "vocab.txt"
CONFIG = "tokenizer_config.json"

PARTS = {
    "pieces": "the lines; those that continue a word start with ##",
    "ids": "the numbers of the lines, from 0",
    "merges": None,
    "pattern": "none is said: BERT's, at white space and punctuation",
    "normalization": f"none is said: load(pattern=), or {CONFIG} beside it",
    "extra tokens": "lines like others; special are those with BERT's names",
    "template": "none is said: [CLS] and [SEP] around texts, if there are both",
    "roles": "by the names of BERT's special tokens",
    "notes": None,
}
LIMITS = "anything but a WordPiece behind BERT's basic tokenization, with ids without holes; added tokens"


KNOWN = {
    "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3": "bert-uncased",  # uncased_L-12, of 2018
    "eeaa9875b23b04b4c54ef759d03db9d1ba1554838f8fb26c5d96fa551df93d02": "bert-cased",  # cased_L-12
    "fe0fda7c425b48c516fc8f160d594c8022a0808447475c1a7c6d6479763f310c": "bert-cased",  # multi_cased_L-12
    "45bbac6b341c319adc98a532532882e91a9cefc0329aa57bac9ae761c27b291c": "bert-uncased",  # chinese_L-12
}
"""Google's vocabularies by their SHA-256."""


def looks_like(data: bytes) -> bool:
    return re.search(rb"(?:\A|\n)\[UNK\]\r?(?:\n|\Z)", data) is not None


def files(file: Input) -> tuple[Input, ...]:
    """The file, and the configuration beside it where that says what the file does not."""
    config = file.beside(os.path.join(os.path.dirname(file.name), CONFIG)) if _needs_config(file) else None
    return (file,) if config is None else (file, config)


def _needs_config(file: Input) -> bool:
    return file.pattern is None and file.sha256 not in KNOWN


# ======================== reading ========================


def read(file: Input) -> Spec:
    """The spec that a file and what is said of it mean.

    Raises:
        FormatError: the file is damaged, or what it leaves out is neither given nor known.
        SubwordValueError: what the caller says cannot be used.
    """
    try:
        lines = file.data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise file.error(f"not UTF-8 at byte {error.start}; save the file as UTF-8") from None
    if not lines[-1]:
        lines.pop()
    ids: dict[str, int] = {}
    for id, line in enumerate(lines):
        token = line.removesuffix("\r")
        if not token:
            raise file.error("an entry cannot be empty", id + 1)
        if ids.setdefault(token, id) != id:
            raise file.error(f"{shown(token)} stands already in line {ids[token] + 1}", id + 1)
    special = _special_tokens(file, ids)
    return _spec(ids, special, _cleaning(file))


def _special_tokens(file: Input, ids: Mapping[str, int]) -> dict[str, int]:
    if UNK not in ids:
        raise file.error(f"there is no {UNK}, which stands for words that cannot be cut into entries")
    if file.special_tokens is None:
        return {token: ids[token] for token in SPECIALS if token in ids}
    special = checked_special_tokens(file.special_tokens)
    tokens = {id: token for token, id in ids.items()}
    for token, id in special.items():
        if ids.get(token, id) != id:
            raise file.error(f"the special token {shown(token)} has the id {ids[token]} here, not {id}")
        if tokens.get(id, token) != token:
            raise file.error(f"the id {id}, given to the special token {shown(token)}, is that of {shown(tokens[id])}")
    return special


def _cleaning(file: Input) -> Cleaning:
    name = KNOWN.get(file.sha256) if file.pattern is None else file.pattern
    if name is not None:
        if isinstance(name, SplitRegex) or name not in CLEANINGS:
            raise SubwordValueError(f"{KIND} goes with pattern={' or '.join(map(repr, CLEANINGS))}, not {name!r}")
        return CLEANINGS[name]
    _, *config = files(file)
    if config:
        return _cleaning_of_config(parse(config[0].data, config[0].name))
    problem = (
        f"{file.name}: {KIND} does not say whether text is put into lower case, and this one (SHA-256 "
        f"{file.sha256[:12]}…) is none that subword knows"
    )
    advice = f"pass pattern={' or pattern='.join(map(repr, CLEANINGS))} to load(), or put its {CONFIG} beside it"
    raise LeftOutError(f"{problem}; {advice}", problem)


def _cleaning_of_config(config: Node) -> Cleaning:
    """As BertTokenizer of transformers understands it."""
    if not config.get("do_basic_tokenize", True).flag():
        raise config["do_basic_tokenize"].error("words without BERT's basic tokenization are not supported")
    lowercase = config.get("do_lower_case", True).flag()
    accents = config.get("strip_accents")
    chinese = config.get("tokenize_chinese_chars", True).flag()
    return Cleaning(lowercase, lowercase if accents.value is None else accents.flag(), chinese)


def _spec(ids: Mapping[str, int], special: Mapping[str, int], cleaning: Cleaning) -> Spec:
    """Special tokens leave the model, so that ordinary text cannot give their ids; all but the unknown one."""
    extra = tuple(ExtraToken(id, token) for token, id in sorted(special.items(), key=lambda item: item[1]))
    template, roles = Template(), {"unk": ids[UNK]}
    if CLS in special and SEP in special:
        cls, sep = special[CLS], special[SEP]
        template = Template((cls, "A", sep), (cls, "A", sep, "B", sep))
        roles |= {"bos": cls, "eos": sep}
    if PAD in special:
        roles["pad"] = special[PAD]
    model = Vocab.of((token.encode(), id) for token, id in ids.items() if token == UNK or token not in special)
    return Spec(
        stages=(*([MatchTokens()] if extra else []), *cleaning.stages, SPLIT),
        model=WordPiece(model, ids[UNK]),
        extra=extra,
        template=template,
        decode=DecodeWordPiece(),
        roles=roles,
    )


# ======================== writing ========================


def said(spec: Spec) -> str | None:
    """What `load` must be told as `pattern`, if that says all."""
    stages = tuple(stage for stage in spec.stages if stage not in (MatchTokens(), SPLIT))
    return next((name for name, cleaning in CLEANINGS.items() if cleaning.stages == stages), None)


def write(spec: Spec) -> bytes:
    """The file with the vocabulary of `spec`. Warns of what must be said again when it is loaded.

    Raises:
        SubwordValueError: neither the file nor the arguments of `load` can hold something of `spec`.
    """
    if not isinstance(spec.model, WordPiece):
        refuse(KIND, f"a {type(spec.model).__name__}")
    pattern = said(spec)
    if pattern is None:
        refuse(KIND, f"the stages {', '.join(map(repr, spec.stages))}; only BERT's")
    tokens = dict(spec.model.vocab.items())
    for token in spec.extra:
        if token.kind != "special":
            refuse(KIND, f"the token {token.content!r} (id {token.id}), which is not special but {token.kind}")
        tokens[token.content.encode()] = token.id
    lines = sorted(tokens.items(), key=lambda item: item[1])
    for number, (token_bytes, id) in enumerate(lines):
        if id != number:
            refuse(KIND, f"ids with holes: there is no {number}")
        if re.search(rb"[\r\n]|\A\Z", token_bytes):
            refuse(KIND, f"the token {token_bytes!r} (id {id}), which is no line")
    ids = {_line(token_bytes): id for token_bytes, id in lines}
    if UNK not in ids:
        refuse(KIND, f"a vocabulary without {UNK}")
    special = {token.content: token.id for token in spec.extra}
    again = _spec(ids, special, CLEANINGS[pattern])
    for part, value in spec.outline().items():
        if value != again.outline().get(part):
            refuse(KIND, f"this tokenizer: its {part} is not BERT's")
    data = "".join(f"{line}\n" for line in ids).encode()
    _warn(data, pattern, special, ids, spec, again)
    return data


def _line(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError:
        refuse(KIND, f"the token {token!r}, which is not text")


def _warn(
    data: bytes, pattern: str, special: Mapping[str, int], ids: Mapping[str, int], spec: Spec, again: Spec
) -> None:
    needed = [] if KNOWN.get(hashlib.sha256(data).hexdigest()) == pattern else [f"pattern={pattern!r}"]
    if special != {token: ids[token] for token in SPECIALS if token in ids}:
        needed.append(f"special_tokens={dict(special)!r}")
    if needed:
        text = f"{KIND} says neither how text is cleaned nor which tokens are special: load it with {', '.join(needed)}"
        warn(text)
    lost = [name for name, id in spec.roles.items() if again.roles.get(name) != id]
    if lost:
        text = f"{KIND} has no place for the roles {', '.join(lost)}"
        warn(text)
