"""What the tests stand on: brokers, real and embedded, and ways to wait for events."""
