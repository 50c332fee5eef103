"""Tests of documents that the command line writes in schemas of a registry."""
