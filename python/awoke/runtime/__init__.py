"""What runs inside one process: server, workers, executors, recovery, signals."""
