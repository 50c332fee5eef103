"""What a user declares: routes with their options, handlers, consumers, readers, injected arguments."""
