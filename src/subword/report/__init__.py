"""Findings and encodings made visible: in a terminal, and in a notebook."""
