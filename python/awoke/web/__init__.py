"""What a running app shows over HTTP."""
