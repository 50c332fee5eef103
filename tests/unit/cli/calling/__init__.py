"""Tests of calls in formats at the command line, with a registry inside the process."""
