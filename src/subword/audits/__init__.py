"""What a tokenizer costs, and whom: one file an audit, each a function from a tokenizer and texts to plain data.

The results are frozen dataclasses of numbers, strings and tuples, so `dataclasses.asdict` makes JSON of them.
"""

from .comparison import Row, compare

__all__ = ["Row", "compare"]
