"""The tools for tests of awoke, FastStream and Temporal, side by side: each answer is a test that runs."""
