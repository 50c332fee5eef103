"""What an operator may ask of a running process, from a terminal, a console or the app itself.

A verb has a row in `verbs`, and an action in `actions`. The rest is the same for all of them: `lines` and `client` are
the UNIX socket of a process, `audit` the record of each command, `pauses` the pauses that outlive a process.
"""
