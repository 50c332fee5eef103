"""Tests of one module each, without brokers."""
