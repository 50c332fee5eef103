"""The embedded brokers, under the name by which tests import them."""

from awoke.embedded import EmbeddedCluster

__all__ = ["EmbeddedCluster"]
