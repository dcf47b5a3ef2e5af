"""The task of sequence classification."""
