"""Models on the Hugging Face Hub: `hf://org/name` or `hf://org/name@revision` -> a folder with its tokenizer files.

The library huggingface_hub does the work (`pip install subword[hub]`), with its cache, its offline mode and its
settings (`HF_HOME`, `HF_HUB_OFFLINE`, `HF_ENDPOINT`, `HF_TOKEN`). Only files that a tokenizer can be read from are
downloaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ..errors import SubwordOSError, SubwordValueError
from . import model_folder

SCHEME = "hf://"
SETTINGS = (
    model_folder.CONFIG,
    model_folder.TOKENS_MAP,
    model_folder.TEMPLATE,
    model_folder.OLD_TEMPLATE,
    f"{model_folder.MORE_TEMPLATES}/*.jinja",
)
"""What is downloaded beside tokenizer files."""


def is_id(name: str) -> bool:
    return name.startswith(SCHEME)


def fetch(name: str, patterns: Sequence[str]) -> str:
    """The folder with the tokenizer files of a model: those that `patterns` match at the top of it, and `SETTINGS`.

    Raises:
        SubwordValueError: `name` is no such id, or huggingface_hub is not installed.
        SubwordOSError: there is no such model, it is not open to the user, or the Hub cannot be reached.
    """
    found = re.fullmatch(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", name.removeprefix(SCHEME), re.ASCII)
    if found is None:
        raise SubwordValueError(f"{name}: write hf://org/name, or hf://org/name@revision")
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError as error:
        raise SubwordValueError(f"{name}: models on the Hub need pip install 'subword[hub]'") from error
    try:
        folder: str = huggingface_hub.snapshot_download(
            found[1], revision=found[2], allow_patterns=[*patterns, *SETTINGS]
        )
    except errors.GatedRepoError as error:
        problem = "its owners want to know who uses it: agree on its page, and log in (`hf auth login`, or HF_TOKEN)"
        raise SubwordOSError(f"{name}: {problem}") from error
    except errors.RepositoryNotFoundError as error:
        raise SubwordOSError(f"{name}: there is no such model, or it is private and you are not logged in") from error
    except errors.RevisionNotFoundError as error:
        raise SubwordOSError(f"{name}: the model has no revision {found[2]!r}") from error
    except errors.HFValidationError as error:
        raise SubwordValueError(f"{name}: {error}") from error
    except errors.LocalEntryNotFoundError as error:
        problem = "it is not in the cache of huggingface_hub, and the Hub cannot be reached, or HF_HUB_OFFLINE is set"
        raise SubwordOSError(f"{name}: {problem}") from error
    except (errors.HfHubHTTPError, OSError) as error:
        raise SubwordOSError(f"{name}: cannot be downloaded: {type(error).__name__}: {error}") from error
    if not os.path.isdir(folder):
        looked_for = f"looked for {', '.join(patterns)}; .gguf files hold whole models and are not fetched"
        raise SubwordOSError(f"{name}: the model has no tokenizer file ({looked_for})")
    return folder
