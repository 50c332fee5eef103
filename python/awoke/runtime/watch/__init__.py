"""Watches a running app: its readable state, its health, and jobs that take too long."""
