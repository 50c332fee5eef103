"""One text of what many nodes say."""

from __future__ import annotations

from awoke.swarm.merging import merged, stacks_of


def test_metrics_of_nodes_are_one_text() -> None:
    head = "# HELP jobs_total Jobs.\n# TYPE jobs_total counter\n"
    one = head + 'jobs_total{topic="t"} 1.0\n# HELP up Up.\n# TYPE up gauge\nup 1.0\n'
    two = head + 'jobs_total{topic="t"} 2.0\n'
    assert merged({1: one, 2: two}) == (
        head
        + 'jobs_total{node="1",topic="t"} 1.0\njobs_total{node="2",topic="t"} 2.0\n'
        + '# HELP up Up.\n# TYPE up gauge\nup{node="1"} 1.0\n'
    )
    assert merged({}) == ""


def test_stacks_of_nodes_have_their_node_and_what_is_no_stack_is_left_out() -> None:
    one = '[{"owner": "shop", "name": "worker-1", "lines": ["a.py:1 in f"]}]'
    entry = {"node": 2, "owner": "shop", "name": "worker-1", "lines": ["a.py:1 in f"]}
    assert stacks_of({2: one, 3: '[{"owner": 7}]', 1: "no"}) == {
        "done": "stacks",
        "text": "1 threads of 3 nodes",
        "stacks": [entry],
    }
    assert stacks_of({2: one})["text"] == "1 threads of node 2"
    assert stacks_of({}) == {"failed": "no node has answered"}
