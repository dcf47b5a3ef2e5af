"""Korean morphemes: segmentation in front of a SentencePiece vocabulary."""
