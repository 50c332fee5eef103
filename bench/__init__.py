"""Programs that measure awoke and its rivals on one real broker; see README.md."""
