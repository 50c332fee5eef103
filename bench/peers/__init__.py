"""Other frameworks for Kafka in Python, each in an environment of its own, beside awoke."""
