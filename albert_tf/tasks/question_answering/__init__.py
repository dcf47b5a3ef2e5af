"""The task of question answering."""
