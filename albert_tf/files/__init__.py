"""Files: atomic writes, JSON and TOML, texts, models by name, and how this package was installed."""
