"""The task of multiple choice."""
