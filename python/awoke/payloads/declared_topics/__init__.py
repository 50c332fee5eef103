"""Topics as an app declares them, compared with those of a cluster, and the changes that make them alike."""
