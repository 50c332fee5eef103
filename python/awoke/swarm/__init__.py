"""A supervised group of processes that run one app: `awoke run module:app --nodes 4`.

`supervisor` watches and never holds user code; `mold` imports the app once and forks the nodes; `node` is one of them,
`node_handle` the same as its supervisor sees it.
"""
