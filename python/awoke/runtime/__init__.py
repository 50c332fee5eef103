"""The runtime: executes the jobs of an app's routes in one process, from its start to its stop."""
