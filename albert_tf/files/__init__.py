"""Files of any kind: written whole or not at all, JSON and TOML, texts, models by name."""
