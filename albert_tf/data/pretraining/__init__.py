"""From tokenized documents to examples: pairs, masks, rows, and the dataset that makes them while training."""
