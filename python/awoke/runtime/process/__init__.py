"""One process of an app: its start and its stop, signals, groups, and the topics that it looks for."""
