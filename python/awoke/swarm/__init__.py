"""A supervised group of processes that run one app: `awoke run module:app --nodes 4`.

- In the supervisor's process, which runs no user code: `supervisor` (the loop), `nodes` (the table of states),
  `node_control` and `node_handle`, `mold_control` and `mold_handle`, `reload`, `health`; `commands`,
  `command_socket` and `questions` (what operators ask), `endpoint` (HTTP).
- In the mold's process, which imports the app once and forks the nodes: `mold`. In each node: `node`.
- Between them: `protocol`. The verbs, and the socket of an app in a single process, are in `awoke.operate.commands`.
"""
