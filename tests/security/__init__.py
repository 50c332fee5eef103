"""Hostile input: what a writer to a topic, a socket or a file can try."""
