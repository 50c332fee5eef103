"""The native contestants: loops in C on the very librdkafka that awoke links."""
