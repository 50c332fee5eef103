"""What awoke counts and measures, for Prometheus; and whether all is well."""
