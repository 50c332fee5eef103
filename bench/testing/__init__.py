"""What the test tools of awoke, FastStream and Temporal can test: each answer is a test that runs."""
