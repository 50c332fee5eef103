"""The tests of awoke."""
