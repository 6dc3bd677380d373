"""Counting by a provider, against a server of the test's own: through the provider's own package, and never beyond this
machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import subword
from subword.cli import main
from subword.errors import SubwordOSError, SubwordValueError
from subword.provider import Provider

pytest.importorskip("anthropic", reason="the package anthropic is not installed")

BEFORE, EACH = 3, 4
"""Tokens that this provider puts before all messages, and into each; else a token is a character."""

Answer = tuple[int, dict[str, Any]]


class Server(ThreadingHTTPServer):
    """Counts as a provider does; `answers` come first."""

    daemon_threads = True
    requests: list[dict[str, Any]]
    answers: list[Answer]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(
            {"path": self.path, "key": self.headers["x-api-key"] or self.headers["authorization"], **body}
        )
        tokens = BEFORE + sum(EACH + len(message["content"]) for message in body["messages"])
        status, answer = self.server.answers.pop(0) if self.server.answers else (200, {"input_tokens": tokens})
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    for name in [name for name in os.environ if name.startswith("ANTHROPIC") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.requests, server.answers = [], []
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path / "none"))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-of-the-test")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def test_tokens_are_those_of_the_text(server: Server) -> None:
    provider = Provider("anthropic", "some-model")
    assert provider.overhead == (BEFORE + EACH, EACH)
    assert [provider.count(text) for text in ("hello", "", "日本")] == [5, 0, 2]
    assert provider.request(["ab", "c"]) == BEFORE + 2 * EACH + 3
    first = server.requests[0]
    assert first["path"] == "/v1/messages/count_tokens" and "a-key-of-the-test" in first["key"]
    assert first["model"] == "some-model" and first["messages"] == [{"role": "user", "content": "a"}]
    assert [message["role"] for message in server.requests[1]["messages"]] == ["user", "assistant", "user"]
    assert len(server.requests) == 2 + 2 + 1  # the overhead is asked for once, an empty text never


def test_no_key_is_an_error_that_says_so(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(SubwordValueError, match="there is no key for Anthropic's counting endpoint: set ANTHROPIC_API"):
        Provider("anthropic", "some-model").count("x")
    assert server.requests == []


def refusal(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((401, refusal("authentication_error", "invalid x-api-key")), "does not accept the key: invalid x-api-key"),
        ((404, refusal("not_found_error", "model: m")), "has no model 'm': model: m"),
        ((400, refusal("invalid_request_error", "too\nlong")), r"answered with an error \(400\): too long"),
        ((403, {}), r"answered with an error \(403\)"),
    ],
)
def test_what_the_provider_refuses(answer: Answer, message: str, server: Server) -> None:
    server.answers.append(answer)
    with pytest.raises(SubwordValueError, match=message):
        Provider("anthropic", "m").count("x")


@pytest.mark.parametrize("name", ["openai", ""])
def test_unknown_providers(name: str) -> None:
    with pytest.raises(SubwordValueError, match="unknown provider"):
        Provider(name, "m")


def test_a_server_that_is_not_there(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")  # the port "discard", which nothing listens on
    with pytest.raises(SubwordOSError, match="the provider cannot be reached"):
        Provider("anthropic", "m").request(["x"])


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(SubwordValueError, match=r'pip install "subword\[anthropic\]"'):
        Provider("anthropic", "m")


# ======================== the command ========================


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("strawberry", "utf-8")
    (tmp_path / "b.txt").write_text("", "utf-8")

    def run(*args: str, code: int = 0) -> tuple[str, str]:
        assert main(args) == code, capsys.readouterr().err
        out, error = capsys.readouterr()
        return out, error

    return run


def test_the_command(server: Server, run: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    args = ("count", "--provider", "anthropic", "--model", "m")
    found = json.loads(run(*args, "a.txt", "b.txt", "--json")[0])
    assert [(row["file"], row["tokens"], row["bytes"]) for row in found["files"]] == [
        ("a.txt", 10, 10),
        ("b.txt", 0, 0),
    ]
    assert found["total"]["tokens"] == 10 and (found["provider"], found["model"]) == ("anthropic", "m")
    assert found["overhead"] == {"message": BEFORE + EACH, "further_message": EACH}
    out, error = run(*args, "--text", "ab")
    assert out.split("\n")[1].split("\t")[:3] == ["text", "1", "2"]
    assert error == "m adds 7 tokens to a request with one message, and 4 with each further one\n"
    (tmp_path / "c.txt").write_bytes(b"\xff")
    assert "c.txt: not UTF-8 (byte 0)" in run(*args, "c.txt", code=1)[1]


def test_the_command_says_what_is_wrong(server: Server, run: Callable[..., tuple[str, str]]) -> None:
    assert "--provider needs --model" in run("count", "--provider", "anthropic", "a.txt", code=2)[1]
    assert "options of tokenizers" in run(
        "count", "--provider", "anthropic", "--model", "m", "--ordinary", "a.txt", code=2
    )[1]  # fmt: skip
    assert "'openai' is not one of anthropic" in run("count", "--provider", "openai", "a.txt", code=2)[1]
    assert "--model is for --provider" in run("count", "gpt2", "a.txt", "--model", "m", code=2)[1]
    assert "name a TOKENIZER" in run("count", code=2)[1]
    assert server.requests == []


EXAMPLE = Path(__file__).parent.parent / "examples" / "count_tokens.py"


def example(*args: str) -> str:
    """What the example prints, in a process of its own."""
    done = subprocess.run([sys.executable, str(EXAMPLE), *args], capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_counts_through_the_provider(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    out = example("--provider", "anthropic", "--model", "m")
    assert re.search(r"letters\W+62\W+62\W+62\W", out) and re.search(r"Japanese\W+32\W+96\W+32\W", out)
    assert "A request with one message takes 7 tokens more, each further message 4." in out
    assert any(message["content"].endswith("strawberry?") for row in server.requests for message in row["messages"])


def test_the_example_counts_offline(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    subword.train(algorithm="byte").save(tmp_path / "tok.subword")
    out = example(str(tmp_path / "tok.subword"))
    assert re.search(r"Japanese\W+32\W+96\W+96\W", out) and "s│t│r│a│w│b│e│r│r│y" in re.sub(r"\n", "", out)
    assert server.requests == []
