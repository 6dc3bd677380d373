"""What a tokenizer costs, and whom: one file an audit, each a function from a tokenizer and texts to plain data.

The results are frozen dataclasses of numbers, strings and tuples, so `dataclasses.asdict` makes JSON of them.
`report/audits.py` says what they look like.
"""

from .comparison import Row, compare
from .efficiency import Efficiency, efficiency, renyi_efficiency, renyi_entropy
from .fairness import Fairness, Language, fairness, gini
from .letters import Letters, letters
from .numbers import Numbers, numbers
from .parallel import Collection, Parallel, builtin_passage, read_parallel

__all__ = [
    "Collection",
    "Efficiency",
    "Fairness",
    "Language",
    "Letters",
    "Numbers",
    "Parallel",
    "Row",
    "builtin_passage",
    "compare",
    "efficiency",
    "fairness",
    "gini",
    "letters",
    "numbers",
    "read_parallel",
    "renyi_efficiency",
    "renyi_entropy",
]
