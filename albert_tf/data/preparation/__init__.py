"""`prepare`: from text files to a folder of shards with a manifest."""
