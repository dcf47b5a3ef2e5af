"""The task of sentence embedding."""
