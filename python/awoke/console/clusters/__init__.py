"""What the console shows and changes of a cluster: its topics, and its consumer groups with their offsets."""
