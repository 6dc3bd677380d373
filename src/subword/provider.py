"""Tokens as a provider counts them: for models whose tokenizer is not public, its counting endpoint is asked.

Anthropic's is asked through the provider's own package, `anthropic` (the extra `anthropic`), which finds the key as it
always does: `ANTHROPIC_API_KEY` in the environment, or a profile of its own. `ANTHROPIC_BASE_URL` names another server.
What is counted is sent there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arguments import string
from .errors import SubwordOSError, SubwordValueError

PROVIDERS = ("anthropic",)

LETTER = "a"
"""A text of exactly one token, whatever the tokenizer: so what else is counted for it is the turn's."""


class Provider:
    """A provider's model, and what it counts.

    Args:
        name: one of `PROVIDERS`.
        model: the provider's name for the model.

    Raises:
        SubwordValueError: the provider's package is not installed, or there is no key.
    """

    def __init__(self, name: str, model: str) -> None:
        if name not in PROVIDERS:
            raise SubwordValueError(f"unknown provider {name!r}; known is {', '.join(PROVIDERS)}")
        self.model = string("model", model)
        try:
            import anthropic
        except ImportError as error:
            raise SubwordValueError(
                'counting by Anthropic takes its package: pip install "subword[anthropic]"'
            ) from error
        self._package: Any = anthropic
        try:
            self._client: Any = anthropic.Anthropic()
        except anthropic.AnthropicError as error:
            raise _no_key() from error
        self._overhead: tuple[int, int] | None = None

    def count(self, text: str) -> int:
        """The tokens of a text itself, without those that mark it as a message."""
        return self.request([text]) - self.overhead[0] if text else 0

    @property
    def overhead(self) -> tuple[int, int]:
        """Tokens beside the text: of a request with one message, and of each further message."""
        if self._overhead is None:
            one, three = self.request([LETTER]), self.request([LETTER] * 3)
            self._overhead = one - 1, max((three - one) // 2 - 1, 0)
        return self._overhead

    def request(self, turns: Sequence[str]) -> int:
        """What the provider counts for a conversation: the user's and the model's turns in turn.

        Raises:
            SubwordValueError: no key, or the provider refuses the request.
            SubwordOSError: the provider cannot be reached.
        """
        api = self._package
        messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(turns)]
        try:
            return int(self._client.messages.count_tokens(model=self.model, messages=messages).input_tokens)
        except api.AuthenticationError as error:
            raise SubwordValueError(f"the provider does not accept the key: {_told(error)}") from error
        except api.NotFoundError as error:
            raise SubwordValueError(f"the provider has no model {self.model!r}: {_told(error)}") from error
        except api.APIStatusError as error:
            raise SubwordValueError(
                f"the provider answered with an error ({error.status_code}): {_told(error)}"
            ) from error
        except api.APIConnectionError as error:
            cause = error.__cause__ or error
            raise SubwordOSError(None, f"the provider cannot be reached: {cause}") from error
        except (TypeError, api.AnthropicError) as error:  # what the package raises where it finds no key
            if self._client.api_key is None and self._client.auth_token is None:
                raise _no_key() from error
            raise


def _no_key() -> SubwordValueError:
    return SubwordValueError(
        "there is no key for Anthropic's counting endpoint: set ANTHROPIC_API_KEY; to count without a provider, name a "
        "tokenizer instead"
    )


def _told(error: Any) -> str:
    """What the provider says, in a line."""
    body = error.body if isinstance(error.body, dict) else {}
    inner = body.get("error")
    return " ".join(str(inner["message"] if isinstance(inner, dict) and "message" in inner else error.message).split())
