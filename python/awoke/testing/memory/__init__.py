"""Parts that stand for brokers and engine where the code of a route runs alone: jobs, partitions, a producer."""
