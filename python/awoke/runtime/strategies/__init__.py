"""The ways to process a job, one file each; `awoke.runtime.executor` chooses one of them for a route."""
