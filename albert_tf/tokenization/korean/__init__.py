"""Segmentation of Korean text into morphemes before SentencePiece."""
