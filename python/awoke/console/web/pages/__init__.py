"""The pages: each module has view models, the functions that make them, and the list `PAGES`."""
