"""Apps that use the libraries of other people, in one process, in a swarm and with --watch."""
