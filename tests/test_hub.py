"""Models on the Hub, against a server on this machine that speaks what of the Hub's language is needed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from format_specs import spec_of

import subword
from subword import ExtraToken
from subword.formats import tokenizer_json

pytest.importorskip("huggingface_hub")

SHA = "0123456789abcdef0123456789abcdef01234567"
SPEC = spec_of(ExtraToken(260, "<|end|>"))
FILES = {
    "tokenizer.json": tokenizer_json.write(SPEC),
    "tokenizer_config.json": json.dumps({"eos_token": "<|end|>"}).encode(),
    "additional_chat_templates/rag.jinja": b"r",
    "chat_template.jinja": b"c",
    "model.safetensors": b"never asked for",
    "model-q4.gguf": b"never asked for",
    "onnx/tokenizer.json": b"never asked for",
}
MODELS: dict[str, dict[str, bytes]] = {"org/model": FILES, "org/empty": {"README.md": b"hello"}}


class Hub(BaseHTTPRequestHandler):
    """`org/gated` is gated, other models than those of MODELS are not there."""

    asked: list[str]

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        self.asked.append(path)
        parts = path.removeprefix("api/models/").split("/")
        name = "/".join(parts[:2])
        if name == "org/gated":
            self.give(403, b"", {"X-Error-Code": "GatedRepo"})
        elif name not in MODELS:
            self.give(401, b"", {"X-Error-Code": "RepoNotFound"})
        elif path.startswith("api/") and parts[2:3] == ["revision"] and parts[3] in ("main", SHA):
            siblings = [{"rfilename": file} for file in MODELS[name]]
            self.give_json({"id": name, "sha": SHA, "siblings": siblings, "tags": [], "private": False})
        elif path.startswith("api/") and parts[2:3] == ["tree"]:
            rows = [self.row(file, data) for file, data in MODELS[name].items()]
            self.give_json(rows)
        elif parts[2:3] == ["resolve"] and "/".join(parts[4:]) in MODELS[name]:
            data = MODELS[name]["/".join(parts[4:])]
            self.give(200, data, {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": SHA})
        else:
            self.give(404, b"", {"X-Error-Code": "RevisionNotFound" if "revision" in parts else "EntryNotFound"})

    do_HEAD = do_GET  # noqa: N815

    def row(self, file: str, data: bytes) -> dict[str, Any]:
        return {"type": "file", "path": file, "oid": hashlib.sha1(data).hexdigest(), "size": len(data)}

    def give_json(self, value: Any) -> None:
        self.give(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def give(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[ThreadingHTTPServer]:
    Hub.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


LOAD = """
import sys, subword
try:
    tok = subword.load(sys.argv[1])
except subword.SubwordError as error:
    print(type(error).__name__, error)
else:
    print(tok.fingerprint, tok.eos_id, dict(tok.spec.chat))
"""


def load(name: str, home: Path, port: int, **settings: str) -> str:
    """What loading prints, in a process of its own: huggingface_hub reads its settings when it is imported."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    environment |= {"HF_HOME": str(home), "HF_ENDPOINT": f"http://127.0.0.1:{port}", "HF_HUB_DISABLE_TELEMETRY": "1"}
    environment |= {"NO_PROXY": "127.0.0.1", "PYTHONPATH": str(Path(subword.__file__).parent.parent), **settings}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOAD, name], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_model_is_downloaded_once(hub: ThreadingHTTPServer, tmp_path: Path) -> None:
    wanted = f"{SPEC.fingerprint} 260 {{'default': 'c', 'rag': 'r'}}"
    assert load("hf://org/model", tmp_path, hub.server_port) == wanted
    asked = [path for path in Hub.asked if "/resolve/" in path]
    assert any(path.endswith("tokenizer.json") for path in asked)
    assert not any("safetensors" in path or "onnx" in path or "gguf" in path for path in asked)
    Hub.asked.clear()
    assert load("hf://org/model", tmp_path, hub.server_port, HF_HUB_OFFLINE="1") == wanted
    assert Hub.asked == []
    assert load(f"hf://org/model@{SHA}", tmp_path, hub.server_port) == wanted
    hub.shutdown()
    assert load("hf://org/model", tmp_path, 9) == wanted  # nobody answers: what is in the cache counts


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "hf://org/gated",
            "SubwordOSError hf://org/gated: its owners want to know who uses it: agree on its page",
        ),
        ("hf://org/none", "SubwordOSError hf://org/none: there is no such model, or it is private"),
        ("hf://org/model@old", "SubwordOSError hf://org/model@old: the model has no revision 'old'"),
        ("hf://org", "SubwordValueError hf://org: write hf://org/name"),
        ("hf://org/na--me..", "SubwordValueError hf://org/na--me..: "),
    ],
)
def test_what_cannot_be_had_is_said(hub: ThreadingHTTPServer, tmp_path: Path, name: str, message: str) -> None:
    assert load(name, tmp_path, hub.server_port).startswith(message)


def test_a_model_without_a_tokenizer(hub: ThreadingHTTPServer, tmp_path: Path) -> None:
    assert "the model has no tokenizer file (looked for" in load("hf://org/empty", tmp_path, hub.server_port)


def test_without_the_network(tmp_path: Path) -> None:
    for settings in ({}, {"HF_HUB_OFFLINE": "1"}):
        said = load("hf://org/model", tmp_path, 9, **settings)
        assert said.startswith("SubwordOSError hf://org/model: it is not in the cache of huggingface_hub, and the Hub")


def test_without_the_library_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['huggingface_hub'] = None\nimport subword\n"
        "try: subword.load('hf://org/model')\n"
        "except subword.SubwordValueError as error: print(error)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(subword.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert "pip install 'subword[hub]'" in done.stdout
