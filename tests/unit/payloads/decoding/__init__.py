"""Tests of decoding at the command line, with a registry inside the process."""
