"""How Python waits: for the engine's handles, on the clock, in flows that block or are awaited, between attempts."""
