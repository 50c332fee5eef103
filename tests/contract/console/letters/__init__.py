"""Promises that hold on embedded brokers and on real Kafka alike."""
