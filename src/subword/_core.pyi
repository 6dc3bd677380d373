"""The Rust core, private to this package. `tests/test_stub.py` checks this file against the built module."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

_U32 = npt.NDArray[np.uint32]
_U64 = npt.NDArray[np.uint64]
_I64 = npt.NDArray[np.int64]
_Text = str | bytes | bytearray | memoryview

__version__: str

def unicode_ranges(name: str, unicode: str) -> list[tuple[int, int]]:
    """First and last code point of each range of a class (`L`, `Lu`, `N`, `M`, `White_Space` …) of a profile."""

def text_ends(text: _Text) -> list[tuple[int, str]]:
    """The bytes at which words, sentences and paragraphs end inside a text, each with the highest that ends there."""

def regex_covers(regex: str, syntax: str, allow_backtracking: bool) -> bool:
    """Whether the matches of a split pattern leave nothing out of any text. Raises if it cannot run."""

def same_in_both_syntaxes(regex: str) -> bool:
    """Whether an expression says the same in tiktoken's syntax and in Oniguruma's."""

def normalize(text: str, form: str, unicode: str) -> str:
    """`text` in a normalization form, by the tables of a Unicode version."""

def stage_parts(text: bytes, row: Sequence[str]) -> list[tuple[int, int, bytes]]:
    """What a Precompiled or StripMarks stage makes of a text: from where to where, and what becomes of it."""

def random_units(seed: int, n: int) -> list[float]:
    """Random numbers from 0 up to, but not, 1."""

def learn_unigram(
    data: bytes,
    offsets: _I64,
    counts: _I64,
    scripts: list[str],
    vocab_size: int,
    character_coverage: float,
    required_chars: str,
    seed_sentencepiece_size: int,
    shrinking_factor: float,
    num_sub_iterations: int,
    rules: tuple[int, bool, bool, bool, bool, bool, bool],
    threads: int,
) -> tuple[list[tuple[bytes, float]], list[tuple[int, float]], int]:
    """Entries of a unigram model with their scores, from words with counts; (entries, mean log likelihood of a word)
    after each round; characters without an entry."""

def learn_sentencepiece_bpe(
    data: bytes,
    offsets: _I64,
    counts: _I64,
    scripts: list[str],
    vocab_size: int,
    character_coverage: float,
    required_chars: str,
    rules: tuple[int, bool, bool, bool, bool, bool, bool],
    progress: Callable[[int], object] | None,
) -> tuple[list[bytes], list[int], list[str], list[int], int]:
    """What SentencePiece's BPE merges in words with counts, in order, and how often each pair was counted then; the
    characters, the most frequent first; tokens before the first merge and after each; characters without an entry."""

def covering_characters(
    data: bytes, offsets: _I64, counts: _I64, character_coverage: float, required_chars: str
) -> tuple[list[tuple[str, int]], int]:
    """The characters of words with counts that a vocabulary must have, the most frequent first; how many it leaves
    out."""

def charsmap_table(keys: list[tuple[bytes, int]]) -> bytes:
    """The table of a `precompiled_charsmap` for sorted keys and their values."""

def log_shares(counts: list[int]) -> list[float]:
    """The logarithm of each share of the whole, the same on every machine."""

def lowercase(text: str, final_sigma: bool, unicode: str) -> str:
    """`text` in lower case, by the tables of a Unicode version."""

def frozen_text(text: _Text) -> Any:
    """A `str` or bytes as they are, a copy of another buffer: what stays the same while it is looked at twice."""

def checksum(data: npt.NDArray[np.uint8]) -> int:
    """64 bits that change when anything in `data` does, by accident; no protection against forgery."""

def read_ranks(
    data: bytes, most: int, check: bool
) -> tuple[bytes, _U64, _U32, int | None, tuple[int, str, int | None] | None]:
    """The lines of a `.tiktoken` file, ranks up to `most`, as packed pieces, their offsets and their ids, which rise.

    Then the id of the empty entry, which is left out, if there is one; and the first bad line, what is wrong with it
    ("fields", "base64", "rank", "rank again", "entry again"), and which earlier line it repeats. Entries that stand
    there twice, which a `Model` refuses, are looked for if `check` says so.
    """

@final
class Entries:
    """The tokens of a file that spells them as text, and its merges: read by `read_members` or `read_entries`."""

    @property
    def pieces(self) -> bytes:
        """The bytes of the tokens that spell some, one after the other, by their ids."""

    @property
    def offsets(self) -> _U64: ...
    @property
    def ids(self) -> _U32: ...
    @property
    def merges(self) -> _U32:
        """Rows of (left id, right id)."""

    @property
    def made(self) -> _U32:
        """The index of the entry that each merge makes."""

    @property
    def merged(self) -> npt.NDArray[np.bool_]:
        """Whether a merge joins or makes an entry, for each."""

    @property
    def others(self) -> list[tuple[str, int]]:
        """The tokens that spell nothing, and their ids."""

    def find(self, piece: bytes) -> int | None:
        """At which place an entry stands, if there is one."""

def read_members(
    data: bytes, most: int, by_characters: bool
) -> tuple[tuple[int, int], tuple[int, int], Entries] | None:
    """The members `vocab` and `merges` of the member `model` of a JSON file: from where to where each stands in it, and
    what they hold. Tokens spell bytes in GPT-2's alphabet, or characters. None where anything in them is unusual, not
    to speak of wrong: a whole parser can say what it is. Ids go up to `most`.
    """

def read_entries(vocab: bytes, merges: bytes, most: int) -> Entries | None:
    """The same of a `vocab.json` and the lines of its `merges.txt`, in GPT-2's alphabet."""

@final
class Policy:
    """Which special tokens a call takes from text, and which strings it refuses. Made by `Engine.policy`."""

@final
class Model:
    """A compiled model of `spec.py`. Immutable; engines share it."""

    @staticmethod
    def bpe(
        pieces: bytes,
        offsets: _U64,
        ids: _U32,
        merges: _U32,
        priority: str,
        ignore_merges: bool,
        units: tuple[str, str, int | None],
        made: _U32 | None,
    ) -> Model:
        """`made` is what `made()` gave for the same model: then nothing is proved again."""

    @staticmethod
    def characters(
        pieces: bytes,
        offsets: _U64,
        ids: _U32,
        merges: _U32,
        affixes: tuple[str, str],
        unk: int | None,
        flags: tuple[bool, bool, bool],
    ) -> Model:
        """A BPE over characters: `affixes` in front of the entries of all but the first, and behind that of the last;
        `flags` are `fuse_unk`, `byte_fallback` and `ignore_merges`."""
    @staticmethod
    def word_piece(pieces: bytes, offsets: _U64, ids: _U32, prefix: str, unk: int, max_chars: int) -> Model: ...
    @staticmethod
    def scored(
        pieces: bytes,
        offsets: _U64,
        ids: _U32,
        algorithm: str,
        scores: npt.NDArray[np.float64],
        kinds: npt.NDArray[np.uint8],
        precision: str,
        unk: int,
        merges: _U32,
        made: _U32 | None,
    ) -> Model:
        """`algorithm` is "unigram", "merges", "words" or "characters"; `made` as for `bpe`."""

    def segmentations(self, piece: bytes) -> Segmentations:
        """All segmentations of a piece by a unigram model."""

    @staticmethod
    def word_level(pieces: bytes, offsets: _U64, ids: _U32, unk: int) -> Model: ...
    @staticmethod
    def longest_match(pieces: bytes, offsets: _U64, ids: _U32) -> Model: ...
    def made(self) -> _U32 | None:
        """What need not be found out again when the same model is made.

        Of a BPE over bytes, how each entry is made: two indices of entries and a rank, three numbers an entry; nothing
        where it is refuted that all are made so. Of a "merges" model with a list, the index of the entry that each
        merge makes. None for models about which nothing is known.
        """

@final
class Segmentations:
    """All segmentations of one piece, each a list of ids with the byte at which they end."""

    def nbest(self, n: int) -> list[tuple[list[tuple[int, int]], float]]:
        """The best ones with their scores."""

    def sample(self, n: int, alpha: float, seed: int) -> list[tuple[list[tuple[int, int]], float]]:
        """Drawn independently, with the logarithms of their probabilities."""

    def sample_without_replacement(
        self, n: int, alpha: float, seed: int
    ) -> list[tuple[list[tuple[int, int]], float, float]]:
        """Different ones, with the logarithms of their probabilities and the perturbed ones."""

    def entropy(self, alpha: float) -> float: ...
    def log_likelihood(self, alpha: float) -> float:
        """The logarithm of the sum of all probabilities, each to the `alpha`."""

    def marginals(self, alpha: float) -> list[tuple[int, int, int, float]]:
        """Start, end, id and probability of all that may stand somewhere."""

@final
class SentencePieceNormalizer:
    """SentencePiece's normalizer. `rules` are in base64, and strings of `protected` stay as they are.

    The flags are add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces and treat_whitespace_as_suffix.
    """

    def __new__(
        cls, rules: str, flags: tuple[bool, bool, bool, bool], protected: list[str]
    ) -> SentencePieceNormalizer: ...
    def apply(self, text: bytes) -> tuple[bytes, _U64]:
        """The text, and for each byte where in the original what it comes from starts; then where the original ends."""

@final
class Engine:
    """A compiled `Spec`. Immutable; safe to share between threads."""

    def __new__(
        cls,
        stages: Sequence[tuple[str, ...]],
        model: Model,
        extra: Sequence[tuple[int, str, str, bool, bool, bool, bool]],
        template: tuple[Sequence[int], Sequence[int]],
        decode: Sequence[str],
    ) -> Engine: ...
    @property
    def n_vocab(self) -> int: ...
    def plan(self) -> list[tuple[str, str, str]]:
        """One row a step: what it does, how it is run, and why that is exact."""

    def last_merges(self) -> _I64:
        """The two ids that the last merge of each entry joins, shape (entries, 2), in the order of the vocabulary.

        -1 for a byte, and for an entry that its own bytes do not encode to.
        """

    def policy(self, allowed: Sequence[str], disallowed: Sequence[str]) -> Policy: ...
    @property
    def default_policy(self) -> Policy:
        """No special token is taken from text; text that spells one is refused."""

    @property
    def ordinary_policy(self) -> Policy:
        """No special token is taken from text; text that spells one is just text."""

    def encode(self, text: _Text, policy: Policy, add_special_tokens: bool) -> list[int]: ...
    def encode_to_numpy(self, text: _Text, policy: Policy, add_special_tokens: bool) -> _U32: ...
    def encode_batch(
        self, texts: Sequence[_Text], policy: Policy, add_special_tokens: bool, threads: int
    ) -> list[list[int]]: ...
    def encode_batch_to_numpy(
        self, texts: Sequence[_Text], policy: Policy, add_special_tokens: bool, threads: int
    ) -> tuple[_U32, _U64]: ...
    def count(self, text: _Text, policy: Policy, add_special_tokens: bool) -> int: ...
    def count_batch(
        self, texts: Sequence[_Text], policy: Policy, add_special_tokens: bool, threads: int
    ) -> list[int]: ...
    def encode_with_spans(self, text: _Text, policy: Policy, add_special_tokens: bool) -> tuple[_U32, _U64, _U64]:
        """Ids, byte spans and character spans; spans are arrays of shape (tokens, 2) on the original text."""

    def split(self, text: _Text, policy: Policy) -> list[tuple[int, int]]:
        """Byte spans, on the original text, of the pieces and of the extra tokens between them."""

    def find_special(self, text: _Text) -> list[tuple[int, int, int]]:
        """Start and end, in characters, and the id of each stretch of text that spells a special token."""

    def truncate(self, text: _Text, n: int, side: str, policy: Policy, add_special_tokens: bool) -> tuple[int, int]:
        """Start and end, in characters for `str` and bytes for `bytes`, of what is kept."""

    def chunk(
        self, text: _Text, limits: tuple[int, int, str], policy: Policy, add_special_tokens: bool
    ) -> list[tuple[int, int, int]]:
        """Start, end (units as in `truncate`) and token count of each chunk.

        `limits`: the arguments `max_tokens`, `overlap` and `ends` of `Tokenizer.chunk`.
        """

    def decode(self, ids: Any, errors: str, skip_special_tokens: bool) -> str:
        """The text of some ids. Raises UnicodeDecodeError, if `errors` says so."""

    def decode_bytes(self, ids: Any, skip_special_tokens: bool) -> bytes: ...
    def decode_batch(self, batch: Sequence[Any], errors: str, skip_special_tokens: bool, threads: int) -> list[str]: ...
    def token_bytes(self, id: int) -> bytes:
        """The bytes that `id` decodes to. Raises UnknownTokenError."""

    def encode_with_dropout(self, text: _Text, policy: Policy, dropout: float, seed: int, n: int) -> list[list[int]]:
        """`n` times the ids of a text, each time with other merges (WordPiece: entries) passed over.

        A merge is passed over if the next number of `random_units(seed, ...)` is less than `dropout`.
        """

    def marginals(self, text: _Text, policy: Policy, alpha: float) -> list[tuple[int, int, int, float]]:
        """What may stand in a text: ids, start and end (units as in `truncate`), and how probable that is."""

    def segmentations(self, text: _Text, policy: Policy) -> list[int | Segmentations]:
        """The parts of a text: ids of extra tokens, and all segmentations of what is between them."""

    def token_id(self, token: bytes) -> int | None: ...

@final
class PieceCounter:
    """Counts the pieces that the stages before a model yield. Special tokens cut the text and are not counted."""

    def __new__(
        cls,
        stages: Sequence[tuple[str, ...]],
        extra: Sequence[tuple[int, str, str, bool, bool, bool, bool]],
        limit: int | None,
    ) -> PieceCounter:
        """`limit`: the bytes that its tables may take, if it is drained whenever it is full."""

    def feed(self, texts: Sequence[_Text], threads: int) -> None: ...
    def is_full_for(self, bytes: int) -> bool:
        """Whether to drain before so much text is fed to it."""

    def drain(self, write: Any) -> None:
        """Empty the tables: `write(run, block)` gets the blocks of one run after another."""

    @property
    def texts(self) -> int: ...
    @property
    def text_bytes(self) -> int: ...
    @property
    def pieces(self) -> int: ...

def run_block(data: bytes, offsets: _I64, counts: _I64, firsts: _I64, sources: _U32) -> bytes:
    """A block of a run, of sorted rows in columns. Raises FormatError on rows that no table has."""

@final
class PieceMerge:
    """Adds runs up, once: their rows in order, those of one piece and source as one."""

    def __new__(cls, runs: Sequence[tuple[Any, int, Sequence[int]]]) -> PieceMerge:
        """Of each run: an iterator over its blocks, what to add to `first`, and the numbers of its sources here."""

    def rows(self, most: int) -> tuple[bytes, _I64, _I64, _I64, _U32]:
        """The next rows in columns, at most so many or some 64 MB: pieces, their offsets, count, first, source."""

    def survey(self, weights: Sequence[int], scale: int) -> list[tuple[int, int, int, int]]:
        """For each count (by weight, in units of `scale`): pieces, their bytes, their counts.

        A count below 1 is taken as 1, one above 1,024 as that.
        """

    def pieces(self, weights: Sequence[int], least: int, in_order: bool) -> Pieces:
        """The pieces that are counted at least so often; `in_order`: as they were first met."""

@final
class Pieces:
    """Distinct pieces with their counts: what merges are learned from."""

    def __new__(cls, items: Sequence[tuple[bytes, int]]) -> Pieces: ...
    @property
    def distinct(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def lost(self) -> tuple[int, int]:
        """How many pieces were left out, and how often these were counted."""

    def learn_bpe(
        self,
        merges: int,
        byte_order: bytes,
        tie_rule: str,
        progress: Any,
        max_token_bytes: int | None = None,
        whole_characters: bool = False,
        initial: Sequence[bytes] = ...,
        start: tuple[_U32, _U64, int] | None = None,
        keep: Any = None,
    ) -> tuple[_U32, _U64, int, tuple[int, _U64]]:
        """Up to `merges` merges, shape (found, 2), and the count of each; how many the lost pieces cannot have changed;
        and how many bytes the pieces have by count, and how many tokens they are before the first merge and after each.

        Ids: 0 … 255 are the bytes in `byte_order`, then one id a merge. `start` is what the same call gave for fewer
        merges, but for the last item: they are made, and learning goes on. `progress(done)` is called now and then;
        where it returns true, or where learning is stopped, `keep` gets what there is so far, in the form of `start`.
        """

    @property
    def fingerprint(self) -> int:
        """A number that tells all that learning looks at from that of other pieces."""

    def extend_bpe(
        self, merges: int, model: Model, taken: Sequence[bytes], tie_rule: str, progress: Any
    ) -> tuple[_U32, _U64, int, tuple[int, _U64]]:
        """The same for the entries of a model, by their places, and what it makes of the pieces. No new token spells an
        entry, or what is `taken`; pieces with a byte or a character that has no entry are left out.
        """

    def characters(self, end_of_word: str, limit: int | None = None, initial: Sequence[bytes] = ...) -> list[bytes]:
        """The characters of the pieces, sorted, the last of each piece with the marker behind it."""

    def learn_bpe_of_characters(
        self,
        merges: int,
        end_of_word: str,
        tie_rule: str,
        progress: Any,
        max_token_bytes: int | None = None,
        limit: int | None = None,
        initial: Sequence[bytes] = ...,
        start: tuple[_U32, _U64, int] | None = None,
        keep: Any = None,
    ) -> tuple[_U32, _U64, int, tuple[int, _U64]]:
        """The same over `characters(end_of_word, limit, initial)`, whose ids are their places.

        Ill-formed pieces are left out.
        """

    def characters_of_words(self, prefix: str) -> list[bytes]:
        """The characters of the pieces, sorted, all but the first of each piece with the prefix in front."""

    def learn_word_piece(
        self, merges: int, prefix: str, by_likelihood: bool, tie_rule: str, progress: Any
    ) -> tuple[_U32, _U64, int, tuple[int, _U64]]:
        """The same over `characters_of_words(prefix)`: by the counts of pairs, or by these for those of their parts."""

def memory_to_learn(pieces: int, bytes: int, merges: int) -> int:
    """About how many bytes of memory learning so many merges takes at most from distinct pieces of so many bytes."""
