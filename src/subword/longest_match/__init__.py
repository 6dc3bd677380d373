"""Longest match: `reference` is the algorithm in plain Python."""
