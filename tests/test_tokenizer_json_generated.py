"""`tokenizer.json` as a whole: files of random parts give the ids and the text that HF tokenizers gives for them.

Run long by hand: `python tests/test_tokenizer_json_generated.py FIRST LAST` tries the files of these seeds.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

from subword import SubwordError, Tokenizer, formats
from subword.errors import FormatError
from subword.formats import native, tokenizer_json

hf = pytest.importorskip("tokenizers")
N, P, M, D = hf.normalizers, hf.pre_tokenizers, hf.models, hf.decoders
PP, Regex, AddedToken = hf.processors, hf.Regex, hf.AddedToken

LETTERS = [
    *"abcdeABC de\n\t.,!?'#0123_-|",
    *"éÉßİıΣςσ中文日ひカーДя한글é́ﬁ①½²٣🤗👩\u200d💻\u0301\u00a0\u3000\ufeff\ufffd\x00\x07\u2028▁Ġ<>",
]
TOKENS = ["<s>", "<|x|>", "[SEP]", "foo", "ABC", "ab", "é", "中文", "x y", "<tok>", "Ab", "<unk>", "Éa", "<pad>"]
EXPRESSIONS = [
    r"\s+", r" {2,}", "[aeiou]", r"\p{L}+", r"\d", "(?:ab|a)b?", r"[^\s]+|\s", r"\w+|[^\w\s]+", r"\p{N}{1,3}",
    "a(?=b)", r"\s+(?!\S)", ".", r"(?<=a)b",
]  # fmt: skip
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
ALPHABET = sorted(P.ByteLevel.alphabet())


class Maker:
    """Makes tokenizers and texts of random parts."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def flip(self, chance: float = 0.5) -> bool:
        return self.rng.random() < chance

    def some(self, make: Callable[[], Any], sequence: Callable[[list[Any]], Any], depth: int = 0) -> Any:
        """One part, or a Sequence of some, nested."""
        if depth < 2 and self.flip(0.3):
            count = self.rng.randint(0 if depth else 1, 3)
            return sequence([self.some(make, sequence, depth + 1) for _ in range(count)])
        return make()

    def normalizer(self) -> Any:
        flip, choice = self.flip, self.rng.choice
        return choice(
            [
                lambda: N.BertNormalizer(flip(), flip(), choice([None, True, False]), flip()),
                lambda: N.Strip(flip(), flip()),
                N.StripAccents, N.NFC, N.NFD, N.NFKC, N.NFKD, N.Lowercase, N.Nmt, N.ByteLevel,
                lambda: N.Prepend(choice(["▁", "x", "ab", " "])),
                lambda: N.Replace(choice([" ", "a", "b", "é", "ab", "  "]), choice(["", "x", "▁", " ", "yz"])),
                lambda: N.Replace(Regex(choice(EXPRESSIONS)), choice(["", "x", "▁", " ", "yz"])),
            ]
        )()  # fmt: skip

    def pre_tokenizer(self) -> Any:
        flip, choice = self.flip, self.rng.choice
        return choice(
            [
                P.BertPreTokenizer, P.Whitespace, P.WhitespaceSplit, P.UnicodeScripts,
                lambda: P.ByteLevel(flip(), flip(), flip()),
                lambda: P.CharDelimiterSplit(choice("a |é▁")),
                lambda: P.Metaspace(choice("▁▁_é"), choice(["always", "first", "never"]), flip()),
                lambda: P.Split(choice([" ", "a", "ab", "é"]), choice(BEHAVIORS), flip(0.3)),
                lambda: P.Split(Regex(choice([*EXPRESSIONS, "x*"])), choice(BEHAVIORS), flip(0.3)),
                lambda: P.Punctuation(choice(BEHAVIORS)),
                lambda: P.Digits(flip()),
                lambda: P.FixedLength(self.rng.randint(1, 6)),
            ]
        )()  # fmt: skip

    def decoder(self) -> Any:
        flip, choice = self.flip, self.rng.choice
        return choice(
            [
                D.ByteLevel, D.Fuse, D.ByteFallback,
                lambda: D.BPEDecoder(choice(["</w>", "a"])),
                lambda: D.WordPiece(choice(["##", "##", "a", ""]), flip()),
                lambda: D.Metaspace(choice("▁_"), choice(["always", "first", "never"])),
                lambda: D.CTC(choice(["<pad>", "a"]), choice(["|", "b"]), flip()),
                lambda: D.Replace(choice(["▁", "a", Regex(r"\s+"), Regex("[ab]"), Regex("x*")]), choice(["", "z"])),
                lambda: D.Strip(choice(" a▁"), self.rng.randint(0, 2), 0),
            ]
        )()  # fmt: skip

    def model(self) -> Any:
        words = [
            "<unk>", *("".join(self.rng.choices("abcdeé中ひД0 .▁", k=self.rng.randint(1, 4))) for _ in range(50)),
            *"abcdeé中ひ▁Ġ",
        ]  # fmt: skip
        ids = {word: id for id, word in enumerate(dict.fromkeys(words))}
        kind = self.rng.choice(["BPE", "BPE", "WordPiece", "WordLevel", "Unigram"])
        if kind == "BPE":
            return self.bpe()
        if kind == "WordLevel":
            return M.WordLevel(ids, unk_token="<unk>")
        if kind == "WordPiece":
            most, prefix = self.rng.choice([100, 5]), self.rng.choice(["##", "##", "a"])
            continuing = dict.fromkeys((*ids, *("##" + word for word in words[1:40])))
            entries = {word: id for id, word in enumerate(continuing)}
            return M.WordPiece(
                entries, unk_token="<unk>", max_input_chars_per_word=most, continuing_subword_prefix=prefix
            )
        rows = [(word, -10 * self.rng.random()) for word in ids]
        falls_back = self.flip(0.4)
        rows += [(f"<0x{byte:02X}>", -12.0) for byte in range(256)] if falls_back else []
        return M.Unigram(rows, unk_id=0, byte_fallback=falls_back)

    def bpe(self) -> Any:
        rng = self.rng
        prefix, suffix = rng.choice([None, None, None, "##"]), rng.choice([None, None, "</w>"])
        units = ALPHABET if self.flip() else rng.sample(ALPHABET, 60) + rng.sample(LETTERS, 30)
        starts, ends = ("", prefix or ""), ("", suffix or "")
        tokens = ["<unk>", *(start + unit + end for unit in units for start in starts for end in ends)]
        falls_back = self.flip(0.4)
        tokens += [f"<0x{byte:02X}>" for byte in range(256)] if falls_back else []
        vocab = {token: id for id, token in enumerate(dict.fromkeys(tokens))}
        parts, merges = [token for token in vocab if token[0] != "<"], dict[tuple[str, str], None]()
        for _ in range(rng.randint(0, 60)):
            left, right = rng.choice(parts), rng.choice(parts)
            if (suffix and left.endswith(suffix)) or (prefix and not right.startswith(prefix)):
                continue
            whole = left + right.removeprefix(prefix or "")
            vocab.setdefault(whole, len(vocab))
            parts.append(whole)
            merges[left, right] = None
        settings = {"unk_token": "<unk>"} if self.flip(0.7) else {}
        affixes = {"continuing_subword_prefix": prefix, "end_of_word_suffix": suffix}
        settings |= {name: affix for name, affix in affixes.items() if affix}
        flags = {"fuse_unk": self.flip(), "ignore_merges": self.flip(0.3), "byte_fallback": falls_back}
        return M.BPE(vocab=vocab, merges=list(merges), **settings, **flags)

    def tokenizer(self) -> Any:
        made = hf.Tokenizer(self.model())
        if self.flip(0.6):
            made.normalizer = self.some(self.normalizer, N.Sequence)
        if self.flip(0.8):
            made.pre_tokenizer = self.some(self.pre_tokenizer, P.Sequence)
        if self.flip(0.85):
            made.decoder = self.some(self.decoder, D.Sequence)
        flags = ("single_word", "lstrip", "rstrip")
        special = self.rng.sample(["<|x|>", "[SEP]", "<unk>", "Éa", "<pad>"], self.rng.randint(0, 3))
        made.add_special_tokens(
            [AddedToken("<s>", special=True, normalized=False)]
            + [AddedToken(c, normalized=False, **{flag: self.flip(0.3) for flag in flags}) for c in special]
        )
        # A single letter may be a byte in the model; two that normalize alike are taken in no certain order.
        added = self.rng.sample(["foo", "ABC", "中文", "x y", "<tok>"], self.rng.randint(0, 3))
        made.add_tokens(
            [AddedToken(c, normalized=self.flip(), **{flag: self.flip(0.3) for flag in flags}) for c in added]
        )
        if self.flip(0.7):
            processors = [self.processor(made)]
            if self.flip(0.2):
                processors.insert(0, PP.BertProcessing(("<s>", made.token_to_id("<s>")), ("<unk>", 0)))
            made.post_processor = PP.Sequence(processors)
        return made

    def processor(self, made: Any) -> Any:
        ids = [("<unk>", 0), ("<s>", made.token_to_id("<s>"))]
        first, second = self.rng.choice(ids), self.rng.choice(ids)
        single = self.rng.choice(["<s> $A", "$A <s>", "<s>:1 $A:2 <unk>", "$A"])
        pair = self.rng.choice(["<s> $A <s> $B:1", "$A:3 $B:4 <s>:5", "$B:1 <s> $A:0", "$A $B"])
        return self.rng.choice(
            [
                lambda: PP.BertProcessing(first, second),
                lambda: PP.RobertaProcessing(first, second),
                lambda: PP.ByteLevel(trim_offsets=self.flip()),
                lambda: PP.TemplateProcessing(single=single, pair=pair, special_tokens=ids),
            ]
        )()

    def texts(self, made: Any, count: int) -> list[str]:
        rng, known = self.rng, list(made.get_vocab())
        letters = ["".join(rng.choices(LETTERS, k=rng.randint(0, 14))) for _ in range(count)]
        glued = [
            "".join(
                rng.choice([*rng.choices(LETTERS, k=2), rng.choice(TOKENS), rng.choice(known), " "]) for _ in range(9)
            )
            for _ in range(count)
        ]
        return ["", " ", "  a  ", "a" * 30, "The quick brown fox don't 123,456 x", *letters, *glued]


def outcome(call: Callable[[], Any]) -> Any:
    """What a call of tokenizers gives; None where it panics, as some of its decoders do on nothing."""
    try:
        return call()
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return None


def check(seed: int, count: int = 4) -> str:
    """Compares one file in every way; says how it went."""
    maker = Maker(seed)
    theirs = outcome(maker.tokenizer)
    if theirs is None:
        return "not made"
    try:
        spec = tokenizer_json.read(theirs.to_str().encode(), "x", tell=lambda _: None)
    except FormatError:
        return "refused"
    ours, slow = Tokenizer(spec), Tokenizer(spec, engine="reference")
    assert formats.read(native.write(spec)) == spec
    try:
        again = hf.Tokenizer.from_str(tokenizer_json.write(spec).decode())
    except SubwordError:
        again = None
    for number, text in enumerate(maker.texts(theirs, count)):
        encoding = outcome(lambda text=text: theirs.encode(text))  # type: ignore[misc]
        if encoding is None:
            continue
        ids = encoding.ids
        assert ours.encode(text, allowed_special="all", add_special_tokens=True) == ids, (seed, text)
        whole = outcome(lambda ids=ids: theirs.decode(ids, skip_special_tokens=False))  # type: ignore[misc]
        if whole is not None:
            assert ours.decode(ids) == whole, (seed, text)
            kept = outcome(lambda ids=ids: theirs.decode(ids))  # type: ignore[misc]
            assert kept is None or ours.decode(ids, skip_special_tokens=True) == kept, (seed, text)
        if again is not None:
            assert again.encode(text).ids == ids, (seed, text)
        if number % 3 == 0:
            fast = ours.tokenize(text, allowed_special="all")
            plain = slow.tokenize(text, allowed_special="all")
            assert fast.ids.tolist() == plain.ids.tolist(), (seed, text)
            assert ours.decode_bytes(ids) == slow.decode_bytes(ids), (seed, text)
    return "written" if again is not None else "equal"


def test_files_of_random_parts_mean_the_same() -> None:
    went = [check(seed) for seed in range(30)]
    assert went.count("written") > 20, went


if __name__ == "__main__":
    import collections
    import traceback

    found: collections.Counter[str] = collections.Counter()
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        try:
            found[check(seed, count=8)] += 1
        except Exception as error:
            found["DIFFERENT"] += 1
            print(seed, repr(error)[:300], traceback.extract_tb(error.__traceback__)[-1].lineno)
    print(dict(found))
