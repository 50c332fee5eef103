"""Records of a topic in a file, and what a route makes of them: recorded, masked, replayed, compared."""
