"""The task of token classification."""
