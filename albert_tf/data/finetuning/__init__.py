"""From tables of labelled texts to padded batches."""
