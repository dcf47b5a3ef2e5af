"""SentencePiece vocabularies, in Python and in TensorFlow graphs."""
