"""Contracts of remote calls, on embedded brokers and on real Kafka."""
