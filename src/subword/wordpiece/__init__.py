"""WordPiece: `reference` is the algorithm in plain Python, one step a line."""
