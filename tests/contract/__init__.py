"""What holds on the mock cluster and on real Kafka alike."""
