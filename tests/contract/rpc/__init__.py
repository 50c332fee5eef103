"""Contracts of remote calls, on the mock cluster and on real Kafka."""
