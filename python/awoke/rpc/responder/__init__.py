"""The responder's side of remote calls: registered methods, and each call from its request to its last reply."""
