"""What awoke tells about itself: events, logs, metrics, traces, HTTP endpoints, and who owns a thread."""
