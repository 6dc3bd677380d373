"""Reading text: from files, folders, globs and standard input, compressed or not, a piece at a time."""

from .files import STDIN, Span, find_files, name_of, size_on_disk
from .reading import Document, read_documents, read_texts

__all__ = ["STDIN", "Document", "Span", "find_files", "name_of", "read_documents", "read_texts", "size_on_disk"]
