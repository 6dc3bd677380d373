"""The native format: readable, and no damage goes unnoticed."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

import numpy as np
import pytest
from format_specs import LONE, STRANGE, WITH_END, changed, nodes, result_or_error

import subword
from subword import formats
from subword.errors import FormatError, SubwordValueError
from subword.formats import native
from subword.spec import Spec

# ======================== the native format ========================

SMALL = native.write(WITH_END)
REST = 72  # bytes of the checksum line


def test_native_file_can_be_read_by_people() -> None:
    first, second, _ = SMALL.split(b"\n", 2)
    header = json.loads(second)
    assert first == b"subword tokenizer 1"
    assert second.isascii()
    assert sorted(header) == ["notes", "outline", "roles", "sections", "written_by"]
    assert header["outline"]["stages"][-1] == {"stage": "Split", "pattern": "gpt2", "unicode": "16.0"}
    assert header["notes"] == WITH_END.notes
    assert SMALL[-REST:].decode() == f"sha256 {hashlib.sha256(SMALL[:-REST]).hexdigest()}\n"


def test_native_every_flipped_bit_is_found() -> None:
    rng = random.Random(0)
    for at in range(len(SMALL)):
        for bit in {1 << rng.randrange(8), 1 << rng.randrange(8), 0x20}:
            damaged = bytearray(SMALL)
            damaged[at] ^= bit
            with pytest.raises(FormatError):
                formats.read(bytes(damaged), "x")
            with pytest.raises(FormatError, match=r"^x: "):
                native.read(bytes(damaged), "x")


def test_native_every_truncation_is_found() -> None:
    for length in range(len(SMALL)):
        with pytest.raises(FormatError):
            formats.read(SMALL[:length], "x")
        with pytest.raises(
            FormatError, match=r"^x: (cut off in its (header|section|checksum)|the first line should be)"
        ):
            native.read(SMALL[:length], "x")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (SMALL + b"\n", "1 bytes too many behind the checksum"),
        (SMALL + SMALL, "bytes too many behind the checksum"),
        (SMALL[:-1], "cut off in its checksum"),
        (SMALL[:-500], "cut off in its section 'ids'"),
        (SMALL[:100], "cut off in its header"),
        (SMALL.replace(b"subword tokenizer 1\n", b"subword tokenizer 2\n"), "version 2 of the format.*upgrade"),
        (SMALL.replace(b"subword tokenizer 1\n", b"subword tokenizer 99999999\n"), "version 99999999 .*upgrade"),
        (SMALL.replace(b"subword tokenizer 1\n", b"subword tokenizer 0\n"), "the first line should be"),
        (SMALL.replace(b"subword tokenizer 1\n", b"subword tokenizer 1\r\n"), "the first line should be"),
        (SMALL.replace(b"subword tokenizer 1\n", b"subword tokenizer " + b"9" * 10**6), "the first line should be"),
        (SMALL.replace(b'"pieces", ', b'"pieces", 1'), "cut off in its section|cut off in its checksum"),
        (SMALL.replace(b"gpt2", b"o200k"), "the checksum does not match"),
        (SMALL.replace(b"gpt2", b"none"), "the checksum does not match"),
        (SMALL.replace(b'"outline"', b'"outlaws"'), "the checksum does not match"),
        (SMALL.replace(b'"sections"', b'"sectioms"'), "the header line is damaged"),
        (SMALL.replace(b"\x00\x01\x00\x00", b"\r\n\x01\x00", 1), "too many|does not match"),
    ],
)
def test_native_damage_is_named(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=f"^x: .*{message}"):
        formats.read(data, "x")


def forged(*changes: tuple[str, Any], spec: Spec = WITH_END, **sections: bytes) -> bytes:
    """A file with a good checksum and a bad content."""
    buffers = {**spec.buffers(), **sections}
    table = [[name, len(buffer)] for name, buffer in buffers.items()]
    header = {"outline": spec.outline(), "roles": dict(spec.roles), "notes": dict(spec.notes), "sections": table}
    line = json.dumps(changed(header, *changes)).encode()
    body = b"".join([b"subword tokenizer 1\n", line, b"\n", *buffers.values()])
    return body + f"sha256 {hashlib.sha256(body).hexdigest()}\n".encode()


def u32(*numbers: int) -> bytes:
    return np.array(numbers, dtype="<u4").tobytes()


FORGED: dict[str, tuple[bytes, str]] = {
    "no outline": (forged(("outline", ...)), "header: the field 'outline' is missing"),
    "no sections": (forged(("sections", [])), "header.sections: expected the sections pieces, offsets, ids, merges"),
    "sections are a number": (forged(("sections", 5)), "header.sections: expected a list"),
    "section more": (
        forged(("sections.3", ["merges", 32]), ("sections", [["pieces", 0]] * 5)),
        r"sections\[1\]: expected",
    ),
    "section of other name": (forged(("sections.0.0", "p")), r"sections\[0\]: expected one of the sections pieces, "),
    "endless section": (forged(("sections.0.1", 2**62)), "cut off in its section 'pieces'"),
    "negative section": (forged(("sections.0.1", -8)), r"sections\[0\]\[1\]: expected a whole number"),
    "huge number": (forged(("sections.0.1", 10**300)), r"sections\[0\]\[1\]: expected a whole number"),
    "stage": (forged(("outline.stages.0.stage", "Reverse")), "KeyError: 'Reverse'"),
    "stage without a name": (forged(("outline.stages.0", {})), "header: KeyError"),
    "stages are a number": (forged(("outline.stages", 5)), "header: TypeError"),
    "stage is a list": (forged(("outline.stages.0", [])), "header: TypeError"),
    "setting of a stage": (forged(("outline.stages.0.normalized", 1)), "MatchTokens.normalized must be True or False"),
    "more settings": (forged(("outline.stages.0.extra", 1)), "header: TypeError"),
    "pattern": (forged(("outline.stages.1.pattern", "gpt9")), r"outline.stages\[1\].pattern: 'gpt9' is unknown"),
    "pattern is a list": (forged(("outline.stages.1.pattern", [])), "Split.pattern must be a string"),
    "Unicode": (forged(("outline.stages.1.unicode", 16)), "Split.unicode must be a string, not 16"),
    "model": (forged(("outline.model.type", "Markov")), "unknown model 'Markov'"),
    "priority": (forged(("outline.model.priority", "luck")), "outline.model: unknown settings 'luck'"),
    "ignore_merges": (forged(("outline.model.ignore_merges", 0)), "ignore_merges must be True or False"),
    "extra id": (
        forged(("outline.extra.0.id", "260")),
        "ExtraToken.id must be an integer",
    ),
    "extra id too large": (forged(("outline.extra.0.id", 2**31)), "the id 2147483648 of the token"),
    "extra kind": (
        forged(("outline.extra.0.kind", "magic")),
        "must be one of special, added, unmatchable, not 'magic'",
    ),
    "extra flag": (forged(("outline.extra.0.lstrip", None)), "ExtraToken.lstrip must be True or False"),
    "extra content": (forged(("outline.extra.0.content", "")), "at least one character"),
    "extra surrogate": (forged(("outline.extra.0.content", LONE)), "lone surrogate"),
    "extra twice": (forged(("outline.extra", [{"id": 260, "content": "x"}, {"id": 260, "content": "y"}])), "repeats"),
    "extra with the id of another": (forged(("outline.extra.0.id", 0)), "has the id of b'!' in the vocabulary"),
    "template id": (
        forged(("outline.template.single", ["A", 999])),
        "outline.template.single: no token has the id 999",
    ),
    "template bool": (forged(("outline.template.single", ["A", True])), "holds ids, .*, not True"),
    "template without A": (
        forged(("outline.template.pair", [])),
        r'Template.pair must hold "A" and "B" once each, not \[\]',
    ),
    "role": (forged(("roles.eos", 999)), "roles.eos: no token has the id 999"),
    "role is a list": (forged(("roles.eos", [])), "'eos'. must be an integer"),
    "notes are a list": (forged(("notes", [])), "header.notes: expected an object"),
    "offsets do not fit": (forged(pieces=b"short"), "the offsets do not rise"),
    "half an offset": (forged(offsets=b"1234"), "header: ValueError"),
    "no offsets": (forged(offsets=b""), "the offsets do not rise"),
    "fewer ids": (forged(ids=u32(1, 2)), "260 pieces with 2 ids"),
    "falling ids": (forged(ids=u32(*range(260, 0, -1))), "the ids of the vocabulary do not rise"),
    "ids too large": (forged(ids=u32(*range(259), 2**31)), "the ids must be from 0 to 2147483647"),
    "odd merges": (forged(merges=u32(1, 2, 3)), "header: ValueError"),
    "merge of an absent id": (forged(merges=u32(1, 10**6)), "merge 0, of the ids 1 and 1000000"),
    "merge to no token": (forged(merges=u32(1, 2)), "merge 0, of the ids 1 and 2, joins or makes a token"),
    "merge twice": (forged(merges=u32(83, 71, 83, 71)), "a merge stands twice"),
}


@pytest.mark.parametrize("name", FORGED)
def test_native_bad_content_with_a_good_checksum(name: str) -> None:
    data, message = FORGED[name]
    with pytest.raises(FormatError, match=message) as caught:
        formats.read(data, "x")
    assert str(caught.value).startswith("x: ")


def test_native_strange_values_anywhere() -> None:
    header = json.loads(SMALL.split(b"\n")[1])
    for path in nodes(header):
        for strange in STRANGE:
            data = forged((".".join(map(str, path)), strange)) if path else forged().replace(b"{", b"[", 1)
            spec = result_or_error(formats.read, data, "x")
            if isinstance(spec, Spec):
                assert not isinstance(result_or_error(subword.Tokenizer, spec), Exception) or "unicode" in path
            else:
                assert isinstance(spec, FormatError)
                assert str(spec).startswith("x: ")


@pytest.mark.parametrize("notes", [{"a": {1, 2}}, {"a": float("nan")}, {"a": b"bytes"}])
def test_notes_that_json_cannot_hold(notes: dict[str, Any]) -> None:
    with pytest.raises(SubwordValueError, match=r"notes or roles .* cannot be saved"):
        native.write(WITH_END.replace(notes=notes))
