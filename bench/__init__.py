"""Programs that measure awoke beside its rivals on one real broker; see README.md."""
