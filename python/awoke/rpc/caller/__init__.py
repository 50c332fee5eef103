"""The caller's side of remote calls: requests, replies, retries, typed clients."""
