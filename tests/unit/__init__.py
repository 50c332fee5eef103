"""Tests that need no broker."""
