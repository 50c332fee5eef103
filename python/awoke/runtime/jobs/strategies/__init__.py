"""The ways to process a job, one file each; `awoke.runtime.jobs.executor` chooses one of them for a route."""
