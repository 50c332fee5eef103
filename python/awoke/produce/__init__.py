"""Sends messages: producers, their transactions, and middleware of what is sent."""
