"""Asking a model to repeat a token: a server of the test's own, and a small model that llama.cpp runs."""

from __future__ import annotations

import dataclasses
import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vocabularies import byte_vocab

import subword
from subword import audits
from subword.audits.repeating import LIKELIEST
from subword.byte_alphabet import BYTE_TO_CHAR, NEVER_IN_UTF8
from subword.cli import main
from subword.errors import FormatError, SubwordOSError, SubwordValueError
from subword.report.parts import Finding
from subword.report.tokens import tokens_part
from subword.spec import BPE, ExtraToken, MatchTokens, Spec, Split, Template

ENTRIES = [(b"ab", 256), (b" ab", 257), (b"abc", 258), (b" cd", 259), (b"cd", 260)]
MERGES = [(97, 98), (32, 256), (256, 99), (99, 100), (32, 260)]
NEWLINE = 10


@pytest.fixture
def tok() -> subword.Tokenizer:
    return subword.Tokenizer(Spec((Split("gpt2"),), BPE(byte_vocab(*ENTRIES), np.array(MERGES, dtype=np.uint32))))


# ======================== verdicts ========================


def test_a_model_is_asked_to_repeat(tok: subword.Tokenizer) -> None:
    suspects = [audits.Suspect(id, b"", 1.0, None) for id in (256, 257, 258, 260)]
    odds = {256: 0.95, 257: 0.0001, 258: 0.005, 260: 0.5}
    asked = []

    def next_token(prompt: list[int]) -> Any:
        asked.append(prompt)
        return [odds.get(id, 0.0) if id in prompt else 0.0 for id in range(tok.n_vocab)]

    found = audits.verify(tok, suspects, next_token)
    assert [row.verdict for row in found] == ["rejected", "verified", "weakly verified", "weakly rejected"]
    assert [row.probability for row in found] == list(odds.values())
    assert len(asked) == 12 and all(any(id in prompt for id in odds) for prompt in asked)
    with pytest.raises(SubwordValueError, match="must give 261 probabilities"):
        audits.verify(tok, suspects, lambda prompt: [1.0])


def test_a_prompt_starts_as_texts_do(tok: subword.Tokenizer) -> None:
    """With the token that starts a text, where the tokenizer puts one there; not with one that ends it."""
    asked: list[list[int]] = []

    def next_token(prompt: list[int]) -> Any:
        asked.append(prompt)
        return np.zeros(301)

    for template, roles, first in (
        (Template((300, "A")), {"bos": 300}, 300),
        (Template(("A", 300)), {"eos": 300}, None),
        (Template(), {"bos": 300}, None),
    ):
        spec = tok.spec.replace(
            stages=(MatchTokens(), *tok.spec.stages), extra=(ExtraToken(300, "<s>"),), template=template, roles=roles
        )
        asked.clear()
        audits.verify(subword.Tokenizer(spec), [audits.Suspect(256, b"ab", 1.0, None)], next_token)
        assert [prompt[0] == 300 for prompt in asked] == [first == 300] * 3
        assert all(prompt.count(300) == (first == 300) for prompt in asked)


# ======================== a server ========================


class Server(ThreadingHTTPServer):
    """Gives every token of a prompt the same probability, as llama.cpp would write it; `answers` come first."""

    daemon_threads = True
    requests: list[dict[str, Any]]
    answers: list[tuple[int, Any]]
    names: dict[int, bytes]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append({"path": self.path, **body})
        held = sorted(set(body["prompt"]))
        rows = [
            {"id": id, "token": "", "bytes": list(self.server.names[id]), "logprob": -math.log(len(held))}
            for id in held
        ]
        whole = {"choices": [{"text": "x", "logprobs": {"content": [{"top_logprobs": rows}]}}]}
        status, answer = self.server.answers.pop(0) if self.server.answers else (200, whole)
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tok: subword.Tokenizer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # a server on this machine is asked without one
    with Server(("127.0.0.1", 0), Handler) as server:
        server.requests, server.answers = [], []
        server.names = {id: tok.token_bytes(id) for id in range(tok.n_vocab)}
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def test_a_server_is_asked(tok: subword.Tokenizer, server: Server) -> None:
    with audits.model_at(address(server) + "/", tok) as next_token:
        odds = np.asarray(next_token([256, 97, 256, 10]))
    assert odds.shape == (261,) and odds[[10, 97, 256]] == pytest.approx([1 / 3] * 3) and odds.sum() == pytest.approx(1)
    (request,) = server.requests
    assert (request["path"], request["prompt"], request["max_tokens"]) == ("/v1/completions", [256, 97, 256, 10], 1)
    assert request["n_probs"] == LIKELIEST


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (500, {"error": "no slot"}, r"answered with an error \(500\): .*no slot"),
        (200, b"<html>", "not JSON"),
        (200, {"choices": [{"text": "a", "logprobs": None}]}, "without the probabilities of tokens by their ids"),
        (200, {"choices": [{"logprobs": {"content": [{"top_logprobs": [{"id": "x"}]}]}}]}, "without the probabilities"),
        (200, [], "without the probabilities"),
    ],
)
def test_a_server_that_does_not_answer_so(
    status: int, answer: Any, message: str, tok: subword.Tokenizer, server: Server
) -> None:
    server.answers.append((status, answer))
    with (
        audits.model_at(address(server), tok) as next_token,
        pytest.raises(SubwordValueError, match=message),
    ):
        next_token([97])


def test_a_model_of_another_tokenizer_is_refused(tok: subword.Tokenizer, server: Server) -> None:
    server.names = dict.fromkeys(range(300), b"other")
    with audits.model_at(address(server), tok) as next_token:
        with pytest.raises(SubwordValueError, match="not a model of this tokenizer: it calls the token 97 'other'"):
            next_token([97])
        with pytest.raises(SubwordValueError, match="not a model of this tokenizer: it calls the token 261"):
            next_token([261])


def test_models_that_are_not_there(tok: subword.Tokenizer, tmp_path: Path) -> None:
    with (
        audits.model_at("http://127.0.0.1:1", tok) as next_token,
        pytest.raises(SubwordOSError, match="the server cannot be reached"),
    ):
        next_token([97])
    for where, error, words in (
        ("ftp://x", SubwordValueError, "a model is a .gguf file, or the address"),
        (str(tmp_path / "none.gguf"), SubwordOSError, "none.gguf"),
    ):
        with pytest.raises(error, match=words), audits.model_at(where, tok):
            pass


# ======================== a model ========================

PLANTED, LOOKS_PLANTED = 257, 259


def copying(path: Path, tok: subword.Tokenizer) -> None:
    """A llama of one layer that says what most of its prompt is: attention to all alike, each token on an axis of its
    own. Bytes that no text has, and the planted entry, are on one axis together, and their logits fall with it. What
    looks planted has nearly their row of the output layer, and yet is repeated, by an axis of its own."""
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
    width, point = 288, 264
    rng = np.random.default_rng(3)
    rows, output = np.zeros((2, tok.n_vocab, width), dtype=np.float32)
    for id in range(tok.n_vocab):
        if id in list(NEVER_IN_UTF8) or id == PLANTED:
            rows[id, point] = 1
            output[id, point] = -100
            output[id, point + 1 :] = rng.normal(size=width - point - 1)
        else:
            rows[id, id] = 1
            output[id, id] = 100
    output[LOOKS_PLANTED, [point, LOOKS_PLANTED]] = -100, 3
    output[NEWLINE] = 0
    same, none = np.eye(width, dtype=np.float32), np.zeros((width, width), dtype=np.float32)
    writer = gguf.GGUFWriter(path, "llama")
    for name, value in (
        ("context_length", 4096), ("embedding_length", width), ("block_count", 1), ("feed_forward_length", width),
        ("head_count", 1),
    ):  # fmt: skip
        getattr(writer, f"add_{name}")(value)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    spelled = ["".join(BYTE_TO_CHAR[byte] for byte in tok.token_bytes(id)) for id in range(tok.n_vocab)]
    writer.add_token_list(spelled)
    writer.add_token_types([1] * tok.n_vocab)
    writer.add_token_merges([f"{spelled[left]} {spelled[right]}" for left, right in MERGES])
    ones = np.ones(width, dtype=np.float32)
    for name, table in {
        "token_embd": rows, "output": output, "output_norm": ones, "blk.0.attn_norm": ones, "blk.0.ffn_norm": ones,
        "blk.0.attn_q": none, "blk.0.attn_k": none, "blk.0.attn_v": same, "blk.0.attn_output": same,
        "blk.0.ffn_gate": none, "blk.0.ffn_up": none, "blk.0.ffn_down": none,
    }.items():  # fmt: skip
        writer.add_tensor(f"{name}.weight", table)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_model_tells_what_only_looks_under_trained(
    tok: subword.Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("xllamacpp", reason="the package xllamacpp is not installed")
    path = str(tmp_path / "m.gguf")
    copying(tmp_path / "m.gguf", tok)
    assert main(["audit", "tokens", path, "--model", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["untrained"]
    assert found["by"] == "distance" and found["known"] == len(NEVER_IN_UTF8)
    suspects = {row["id"]: row for row in found["suspects"]}
    assert set(suspects) == {PLANTED, LOOKS_PLANTED}
    assert suspects[PLANTED]["verdict"] == "verified" and suspects[PLANTED]["probability"] < 0.001
    assert suspects[LOOKS_PLANTED]["verdict"] == "rejected" and suspects[LOOKS_PLANTED]["probability"] > 0.9


def test_a_file_that_cannot_be_run(tok: subword.Tokenizer, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the package xllamacpp is not installed")
    (tmp_path / "m.gguf").write_bytes(b"GGUF and no more")
    with (
        pytest.raises(FormatError, match=r"llama\.cpp cannot run this file"),
        audits.model_at(str(tmp_path / "m.gguf"), tok),
    ):
        pass


def test_the_command_asks_about_the_likeliest(
    tok: subword.Tokenizer, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr("subword.cli.audit_risks.ASKED", 1)
    rows = np.random.default_rng(0).normal(size=(tok.n_vocab, 32)).astype(np.float32)
    for id in (*NEVER_IN_UTF8, PLANTED, LOOKS_PLANTED):
        rows[id] = rows[NEVER_IN_UTF8[0]]
    np.save(tmp_path / "t.npy", rows)
    tok.save(tmp_path / "t.subword")
    args = ["audit", "tokens", str(tmp_path / "t.subword"), "--model", address(server)]
    assert main(args) == 2
    assert "give --embeddings, too" in capsys.readouterr().err
    args += ["--embeddings", str(tmp_path / "t.npy")]
    assert main([*args, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["untrained"]
    assert [row["verdict"] for row in found["suspects"]] == ["weakly rejected", None]
    assert len(server.requests) == 3
    assert main(args) == 0
    assert "The model could not repeat 0 of the likeliest 1." in capsys.readouterr().out


def test_what_a_model_cannot_repeat_is_a_finding(tok: subword.Tokenizer) -> None:
    rows = np.random.default_rng(0).normal(size=(tok.n_vocab, 32)).astype(np.float32)
    for id in (*NEVER_IN_UTF8, PLANTED, LOOKS_PLANTED):
        rows[id] = rows[NEVER_IN_UTF8[0]]
    table = audits.untrained(tok, rows)
    odds = {PLANTED: 0.0, LOOKS_PLANTED: 1.0}
    tried = audits.verify(tok, table.suspects, lambda _: np.array([odds.get(id, 0) for id in range(tok.n_vocab)]))
    part = tokens_part(audits.tokens(tok), dataclasses.replace(table, suspects=tuple(tried)))
    (found,) = (block for block in part.blocks if isinstance(block, Finding))
    assert found.what == "2 entries look under-trained by distance. The model could not repeat 1 of them."
