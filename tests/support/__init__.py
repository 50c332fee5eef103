"""The ground of the tests: brokers, real and embedded, and ways to wait for events."""
