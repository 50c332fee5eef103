"""Tags of awoke for templates."""
