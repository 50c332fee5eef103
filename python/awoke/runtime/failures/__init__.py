"""Failures of user code: retries, dead letters, values that do not decode, and messages that kill their process."""
