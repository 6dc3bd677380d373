"""What a tokenizer is made of, as data to look at."""

from .views import Merge, Part, expand, flat, made_of, merges
from .vocabulary import Entry, Vocabulary

__all__ = ["Entry", "Merge", "Part", "Vocabulary", "expand", "flat", "made_of", "merges"]
