"""Jobs: workers, executors, the strategies of routes, and what a handler returns."""
