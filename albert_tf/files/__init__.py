"""Reading and writing files: atomic writes, JSON and TOML, texts, and models by name."""
