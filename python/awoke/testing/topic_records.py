"""Records the topics that the apps of a test read, for `awoke replay`: the option `--awoke-record` of the plugin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from awoke.declare.reader import Reader
from awoke.errors import AwokeError
from awoke.settings import KafkaValue
from awoke.testing.outputs import QUICK_END
from awoke.testing.probe import Probe
from awoke.testing.recordings.recording import Recording, in_order, recorded, write_recording

TIMEOUT_S = 10.0


def topics_read(probes: Iterable[Probe]) -> list[str]:
    """Returns the topics that the routes of these apps read."""
    return sorted({str(topic) for probe in probes for group in probe.runner.joining for topic in group.routes})


def record_topics(
    topics: Iterable[str], bootstrap_servers: str, kafka: Mapping[str, KafkaValue], folder: Path
) -> Iterator[str]:
    """Writes all messages of each topic into `folder/TOPIC.rec`, and yields a text for each that failed. Blocks.

    A topic without messages has no file.
    """
    for topic in topics:
        try:
            with Reader(topic, bootstrap_servers=bootstrap_servers, start=0, kafka={**kafka, **QUICK_END}) as reader:
                records = in_order(recorded(each) for each in reader.read_until_end(TIMEOUT_S))
            if records:
                folder.mkdir(parents=True, exist_ok=True)
                write_recording(Recording(topic, records), folder / f"{topic}.rec", replaces=True)
        except (AwokeError, OSError) as error:
            yield f"--awoke-record: {topic} was not recorded: {error}"
