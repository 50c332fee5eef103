"""A history checker: members copy a topic while a nemesis disturbs them; then the logs say what was lost or repeated.

After Jepsen's checkers of queues. The producer and the judge share no code with awoke's engine.
"""
