"""The unigram language model."""
