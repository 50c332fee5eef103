"""Promises that hold on the mock cluster and on real Kafka alike."""
