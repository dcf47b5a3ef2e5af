"""The task of masked LM."""
