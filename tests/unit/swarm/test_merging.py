"""One text of what many nodes say."""

from __future__ import annotations

from awoke.swarm.merging import merged


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
