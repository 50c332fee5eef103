"""Metrics for Prometheus, and the health of a process."""
