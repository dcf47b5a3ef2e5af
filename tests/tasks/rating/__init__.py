"""A task that CONTRIBUTING.md adds: how many stars a text has."""
