"""Tests of one module each, without a real registry."""
