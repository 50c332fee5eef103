"""Topics, and consumer groups with their offsets: shown and changed by the console."""
