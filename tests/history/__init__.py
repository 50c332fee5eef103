"""A history checker: groups copy a topic while a nemesis disturbs them; then it is told what was lost or repeated.

The logs tell that, and the coordinators tell which partitions have no owner. After Jepsen's checkers of queues. The
producer and the judge share no code with awoke's engine.
"""
