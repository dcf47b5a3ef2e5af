"""Vocabulary files (WordPiece and word-end pieces), in Python and in TensorFlow graphs."""
