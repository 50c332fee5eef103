"""Formats of calls at the command line. A package, so that `commands.load` does not load its libraries for help."""
