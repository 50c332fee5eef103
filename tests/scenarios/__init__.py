"""Whole stories: processes that are stopped and killed, members that come and go, on real Kafka."""
