"""What a tokenizer costs, and whom: one file an audit, each a function from a tokenizer and texts to plain data.

The results are frozen dataclasses of numbers, strings and tuples, so `dataclasses.asdict` makes JSON of them.
The package `report` says what they look like.
"""

from .code import Code, code
from .comparison import Row, compare
from .efficiency import Efficiency, efficiency, renyi_efficiency, renyi_entropy
from .fairness import Fairness, Language, fairness, gini
from .letters import Letters, letters
from .money import Budget, Mixture, Price, budget, measured_ratios, mixture, read_prices
from .morphology import Morphology, builtin_morphemes, morphology, read_morphemes
from .numbers import Numbers, numbers
from .parallel import Collection, Parallel, builtin_passage, read_parallel
from .repeating import model_at, verify
from .security import Security, non_canonical, security
from .side_by_side import SideBySide, side_by_side
from .tokens import Tokens, tokens, unreachable
from .untrained import Suspect, Untrained, untrained
from .vocabulary import Vocabulary, vocabulary
from .vocabulary_size import VocabularySize, Weight, attention_ratio, optimum, vocabulary_size, weight

__all__ = [
    "Budget",
    "Code",
    "Collection",
    "Efficiency",
    "Fairness",
    "Language",
    "Letters",
    "Mixture",
    "Morphology",
    "Numbers",
    "Parallel",
    "Price",
    "Row",
    "Security",
    "SideBySide",
    "Suspect",
    "Tokens",
    "Untrained",
    "Vocabulary",
    "VocabularySize",
    "Weight",
    "attention_ratio",
    "budget",
    "builtin_morphemes",
    "builtin_passage",
    "code",
    "compare",
    "efficiency",
    "fairness",
    "gini",
    "letters",
    "measured_ratios",
    "mixture",
    "model_at",
    "morphology",
    "non_canonical",
    "numbers",
    "optimum",
    "read_morphemes",
    "read_parallel",
    "read_prices",
    "renyi_efficiency",
    "renyi_entropy",
    "security",
    "side_by_side",
    "tokens",
    "unreachable",
    "untrained",
    "verify",
    "vocabulary",
    "vocabulary_size",
    "weight",
]
