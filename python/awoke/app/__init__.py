"""The app, and how its name `module:attribute` is found."""
