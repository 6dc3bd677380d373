"""Whether a model can repeat a token: Land and Bartolo 2024's test of tokens that look under-trained.

A model is anything that gives the probabilities of the next token. `model_at` makes that of a server of llama.cpp, or
of a GGUF file, which the package xllamacpp serves to this process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from ..arguments import string
from ..errors import FormatError, SubwordOSError, SubwordValueError
from ..tokenizer import Tokenizer
from .untrained import Suspect, Verdict

NextToken = Callable[[list[int]], npt.ArrayLike]
"""Ids of a prompt -> the probability of each id to come next, shape (at least n_vocab,)."""

SHOWN_WORDS = ("apple", "Berlin", "seven", "window")
LIKELIEST = 1000
"""So many probabilities are asked of a server: what is none of these has less than 0.001, as all sum up to 1."""
SECONDS = 600
"""A server that takes longer for a token is given up."""
CONTEXT = 2048
"""Prompts are far shorter."""


def verify(tok: Tokenizer, suspects: Sequence[Suspect], next_token: NextToken) -> list[Suspect]:
    """Ask a model to repeat each token. One that it has learned is repeated; one that it has not is not.

    Returns:
        The suspects with the highest probability that their token got in three prompts, and a verdict: below 0.001
        `verified` (the model cannot repeat it), below 0.01 `weakly verified`, over 0.9 `rejected`, else `weakly
        rejected`.

    Raises:
        SubwordValueError: there are not as many probabilities as ids.
    """
    verified = []
    for suspect in suspects:
        best = 0.0
        for prompt in _prompts(tok, suspect.id):
            odds = np.asarray(next_token(prompt))
            if odds.ndim != 1 or len(odds) < tok.n_vocab:
                raise SubwordValueError(f"next_token must give {tok.n_vocab:,} probabilities, not {odds.shape}")
            best = max(best, float(odds[suspect.id]))
        verdict: Verdict = "verified" if best < 0.001 else "weakly verified" if best < 0.01 else "weakly rejected"
        verified.append(replace(suspect, verdict="rejected" if best > 0.9 else verdict, probability=best))
    return verified


def _prompts(tok: Tokenizer, id: int) -> list[list[int]]:
    """Prompts behind which the token is to come. It is put in by its id: its text may encode otherwise."""

    def ids(text: str) -> list[int]:
        return tok.encode(text, allowed_special=(), disallowed_special=())

    start = tok.encode("", add_special_tokens=True)[:1]
    first = start if start and start[0] == tok.bos_id else []
    lines = [ids(f"Input: «{word}» Output: «{word}»\n") for word in SHOWN_WORDS]
    shots = [each for line in lines for each in line]
    once = [*ids("Repeat the string «"), id, *ids("» exactly: «")]
    several = [each for _ in range(6) for each in (id, *ids("\n"))]
    return [[*first, *prompt] for prompt in ([*shots, *ids("Input: «"), id, *ids("» Output: «")], once, several)]


# ======================== models ========================


@contextmanager
def model_at(where: str, tok: Tokenizer) -> Iterator[NextToken]:
    """A model of a tokenizer's, as long as the context lasts.

    Args:
        where: the address of a server of llama.cpp, `http://localhost:8080`, or a `.gguf` file.

    Raises:
        SubwordOSError: there is no such file, or the server cannot be reached.
        SubwordValueError: the file cannot be run, or the server's answers are not those of a model of this tokenizer.
    """
    if string("a model", where).startswith(("http://", "https://")):
        yield lambda ids: _asked(where, ids, tok)
    elif where.lower().endswith(".gguf"):
        server = _serve(where)
        yield lambda ids: _asked(str(server.listening_address), ids, tok)
    else:
        raise SubwordValueError(f"{where}: a model is a .gguf file, or the address of a server of llama.cpp (http://…)")


def _serve(path: str) -> Any:
    """What runs a file, and stops with the last reference to it."""
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise SubwordOSError(error.errno, error.strerror, path) from error
    try:
        import xllamacpp
    except ImportError:
        raise SubwordValueError(f"{path}: GGUF files are run by the package xllamacpp: pip install xllamacpp") from None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx, parameters.n_parallel, parameters.verbosity = CONTEXT, 1, -1
    parameters.warmup = parameters.ui = False
    try:
        return xllamacpp.Server(parameters)
    except (RuntimeError, ValueError, OSError) as error:
        raise FormatError(f"{path}: llama.cpp cannot run this file: {' '.join(str(error).split())}") from error


def _asked(address: str, prompt: Sequence[int], tok: Tokenizer) -> npt.NDArray[np.float64]:
    """The probabilities of the likeliest tokens behind a prompt; 0 for all others."""
    body = {"prompt": list(prompt), "max_tokens": 1, "temperature": 0, "logprobs": LIKELIEST, "n_probs": LIKELIEST}
    answer = _post(f"{address.rstrip('/')}/v1/completions", body)
    try:
        rows = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        given = {int(row["id"]): (float(row["logprob"]), bytes(row["bytes"])) for row in rows}
    except (KeyError, IndexError, TypeError, ValueError):
        raise SubwordValueError(
            f"{address}: an answer without the probabilities of tokens by their ids; is this a server of llama.cpp?"
        ) from None
    known = {token.id for token in tok.spec.extra}
    differ = [
        id
        for id, (_, data) in given.items()
        if id >= tok.n_vocab or (id not in known and data and data != _bytes(tok, id))
    ]
    if 2 * len(differ) > len(given):
        name = given[differ[0]][1].decode("utf-8", "replace")
        raise SubwordValueError(f"{address}: not a model of this tokenizer: it calls the token {differ[0]} {name!r}")
    odds = np.zeros(tok.n_vocab)
    for id, (logarithm, _) in given.items():
        if id < tok.n_vocab:
            odds[id] = np.exp(logarithm)
    return odds


def _bytes(tok: Tokenizer, id: int) -> bytes:
    try:
        return tok.token_bytes(id)
    except KeyError:  # a hole
        return b""


def _post(url: str, body: dict[str, Any]) -> Any:
    from urllib.error import HTTPError, URLError
    from urllib.request import ProxyHandler, Request, build_opener

    here = urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")
    opener = build_opener(*([ProxyHandler({})] if here else []))
    request = Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with opener.open(request, timeout=SECONDS) as response:
            return json.load(response)
    except HTTPError as error:
        told = " ".join(error.read(500).decode("utf-8", "replace").split())
        raise SubwordValueError(f"{url}: the server answered with an error ({error.code}): {told}") from error
    except ValueError as error:
        raise SubwordValueError(f"{url}: the answer is not JSON; is this a server of llama.cpp?") from error
    except (URLError, OSError) as error:
        raise SubwordOSError(f"{url}: the server cannot be reached: {getattr(error, 'reason', error)}") from error
