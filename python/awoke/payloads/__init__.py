"""What a message carries: formats, schemas of a registry, typed topics, secret fields, dead letters."""
