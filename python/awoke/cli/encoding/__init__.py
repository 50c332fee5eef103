"""Writes JSON in schemas of a registry. A package, so that `commands.load` does not load its libraries for help."""
