"""Administration of a cluster: a topic with settings, more partitions, and a group that goes back to the beginning.

`python -m examples.admin 127.0.0.1:9092` runs it on Kafka, or on `awoke broker orders`. It makes a topic
and a group of its own, and deletes them.
"""

from __future__ import annotations

import sys
import uuid

import awoke

MESSAGES = 10


def read_all(bootstrap_servers: str, topic: str, group: str) -> None:
    """Reads the topic to its end as a member of the group, and commits."""
    app = awoke.App("admin", group=group, bootstrap_servers=bootstrap_servers)
    left = list(range(MESSAGES))

    @app.on(topic)
    def read(_message: awoke.Message[bytes]) -> None:
        left.pop()
        if not left:
            app.stop()

    app.run()


def main(bootstrap_servers: str) -> None:
    """Reads a topic, goes back to its beginning, and deletes it."""
    topic = group = f"example-{uuid.uuid4().hex[:8]}"
    with awoke.Admin(bootstrap_servers) as admin:
        admin.create_topic(topic, partitions=1, config={"retention.ms": 3_600_000})
        admin.create_partitions(topic, 2)
        admin.alter_configs(topic, {"cleanup.policy": "delete"})
        print(f"retention.ms: {admin.describe_configs(topic)['retention.ms'].value}")
        with awoke.Producer(bootstrap_servers) as producer:
            awoke.wait_all([producer.produce(topic, b"%d" % number) for number in range(MESSAGES)], 30)

        read_all(bootstrap_servers, topic, group)
        print(f"committed: {sum(admin.group_offsets(group).values())} of {MESSAGES}")

        plan = admin.plan_reset(group, [topic], to="earliest")
        for change in plan:
            print(f"partition {change.partition}: from {change.before} to {change.after}")
        admin.reset_offsets(plan)
        print(f"committed now: {sum(admin.group_offsets(group).values())}")

        admin.delete_group(group)
        admin.delete_topic(topic)


if __name__ == "__main__":
    main(sys.argv[1])
