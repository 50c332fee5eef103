"""`awoke schema`: what is listed, shown, checked, compared and registered, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from awoke.cli.main import command_line
from awoke.errors import AwokeError, ConfigError
from awoke.payloads.registry import (
    InvalidSchema,
    Reference,
    RegistryUnauthorized,
    RegistryUnavailable,
    Schema,
    SchemaNotFound,
    SchemaRegistry,
)
from awoke.testing.registry import EmbeddedRegistry
from tests.unit.cli.fakes import run

ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
TOTAL = {"name": "total", "type": "double"}
PROTO = 'syntax = "proto3";\nmessage Stock {\n\tint64 id = 1;\n}\n'


def order(*fields: dict[str, Any]) -> str:
    """Returns the Avro schema of a record with these fields."""
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedRegistry]:
    """A registry with two versions of `orders-value`, which the environment names."""
    with EmbeddedRegistry() as registry:
        monkeypatch.setenv("AWOKE_REGISTRY_URL", registry.url)
        with SchemaRegistry(registry.url) as client:
            client.register("orders-value", Schema(order(ID)))
            client.register("orders-value", Schema(order(ID, NOTE)))
        yield registry


def written(file: Path, text: str) -> str:
    """Writes a file and returns its path."""
    file.write_text(text)
    return str(file)


def registered(registry: EmbeddedRegistry, subject: str, schema: Schema) -> None:
    with SchemaRegistry(registry.url) as client:
        client.register(subject, schema)


# List.


def test_subjects_are_listed_with_their_latest_version(registry: EmbeddedRegistry) -> None:
    registered(registry, "stock-value", Schema(PROTO, "PROTOBUF"))
    rows = [line.split() for line in run("schema", "list").output.splitlines()]
    assert rows == [
        ["subject", "version", "id", "kind"],
        ["orders-value", "2", "2", "AVRO"],
        ["stock-value", "1", "3", "PROTOBUF"],
    ]


def test_a_list_is_limited_to_a_prefix_and_is_json_for_programs(registry: EmbeddedRegistry) -> None:
    registered(registry, "stock-value", Schema('{"type": "object"}', "JSON"))
    (line,) = run("schema", "list", "stock", "--json").output.splitlines()
    assert json.loads(line) == {"subject": "stock-value", "version": 1, "id": 3, "kind": "JSON"}
    assert run("schema", "list", "none", "--json").output == ""


def test_a_subject_that_is_deleted_meanwhile_is_left_out(
    registry: EmbeddedRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SchemaRegistry, "subjects", lambda self, prefix: ["gone-value", "orders-value"])
    assert [line.split()[0] for line in run("schema", "list").output.splitlines()] == ["subject", "orders-value"]


# Show.


def test_the_head_of_a_schema_is_on_standard_error(registry: EmbeddedRegistry) -> None:
    done = CliRunner().invoke(command_line(["schema"]), ["schema", "show", "orders-value", "--version", "1"])
    assert json.loads(done.stdout) == json.loads(order(ID))
    assert done.stdout.startswith('{\n  "type": "record",\n  "name": "Order",\n')
    head = dict(line.split(": ") for line in done.stderr.splitlines())
    assert (head["subject"], head["version"], head["id"], head["kind"]) == ("orders-value", "1", "1", "AVRO")
    assert len(head["guid"]) == 36


def test_a_schema_is_shown_by_its_id(registry: EmbeddedRegistry) -> None:
    lines = run("schema", "show", "--id", "2").output.splitlines()
    assert lines[0] == "id: 2"
    assert '      "name": "note",' in lines


def test_a_schema_is_shown_with_its_references(registry: EmbeddedRegistry) -> None:
    reference = Reference("Order", "orders-value", 2)
    registered(registry, "batches-value", Schema('{"type": "array", "items": "Order"}', references=(reference,)))
    assert "reference: Order=orders-value:2\n" in run("schema", "show", "batches-value").output
    document = json.loads(run("schema", "show", "batches-value", "--json").output)
    assert (document["subject"], document["version"], document["id"]) == ("batches-value", 1, 3)
    assert (document["kind"], document["schema"]) == ("AVRO", '{"type": "array", "items": "Order"}')
    assert document["references"] == [{"name": "Order", "subject": "orders-value", "version": 2}]


def test_the_source_of_a_protobuf_file_is_shown_as_it_is(registry: EmbeddedRegistry) -> None:
    registered(registry, "stock-value", Schema(PROTO, "PROTOBUF"))
    done = CliRunner().invoke(command_line(["schema"]), ["schema", "show", "stock-value"])
    assert done.stdout == PROTO


@pytest.mark.parametrize("words", [[], ["orders-value", "--id", "1"], ["--id", "1", "--version", "2"]], ids=" ".join)
def test_a_schema_is_shown_by_subject_or_by_id(words: list[str], registry: EmbeddedRegistry) -> None:
    with pytest.raises(ConfigError, match="say a SUBJECT, with --version or without, or an --id alone"):
        run("schema", "show", *words)


@pytest.mark.parametrize("words", [["none"], ["orders-value", "--version", "9"], ["--id", "99"]], ids=" ".join)
def test_what_is_not_in_the_registry_is_an_error(words: list[str], registry: EmbeddedRegistry) -> None:
    with pytest.raises(SchemaNotFound, match="not found"):
        run("schema", "show", *words)


@pytest.mark.parametrize("word", ["0", "-1", "soon", "all"])
def test_a_version_is_a_number_or_latest(word: str, registry: EmbeddedRegistry) -> None:
    with pytest.raises(ConfigError, match=f"a version is a number from 1 or latest, not '{word}'"):
        run("schema", "show", "orders-value", f"--version={word}")


# Check.


def test_a_compatible_schema_ends_the_check_with_0(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    file = written(tmp_path / "order.avsc", order(ID))
    done = run("schema", "check", "orders-value", file)
    assert (done.exit_code, done.output.splitlines()) == (
        0,
        [
            f"compatible: {file} with version 2 (the latest) of orders-value",
            "rule BACKWARD: readers with this schema must be able to read what was written with version 2",
        ],
    )


def test_an_incompatible_schema_ends_the_check_with_1_and_the_reasons(
    registry: EmbeddedRegistry, tmp_path: Path
) -> None:
    file = written(tmp_path / "order.avsc", order(ID, TOTAL))
    done = run("schema", "check", "orders-value", file)
    verdict, rule, reason = done.output.splitlines()
    assert done.exit_code == 1
    assert verdict == f"not compatible: {file} with version 2 (the latest) of orders-value"
    assert rule.startswith("rule BACKWARD: ")
    assert reason.startswith("- /fields/1: ")
    assert "`total`" in reason


def test_a_check_with_all_versions_says_which_ones_are_against_it(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    file = written(tmp_path / "order.avsc", order(ID, TOTAL))
    document = json.loads(run("schema", "check", "orders-value", file, "--version", "all", "--json").output)
    assert (document["is_compatible"], document["level"], document["versions"]) == (False, "BACKWARD", [1, 2])
    assert [each["version"] for each in document["reasons"]] == [1, 2]


def test_at_a_transitive_level_a_check_compares_as_registering_does(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    with SchemaRegistry(registry.url) as client:
        client.set_compatibility("FULL_TRANSITIVE", "orders-value")
    done = run("schema", "check", "orders-value", written(tmp_path / "order.avsc", order(ID)))
    assert "order.avsc with versions 1 to 2 of orders-value\nrule FULL_TRANSITIVE: " in done.output


def test_a_first_schema_is_compatible_if_it_is_one(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    file = written(tmp_path / "stock.avsc", order(ID))
    assert run("schema", "check", "stock-value", file).exit_code == 0
    with pytest.raises(InvalidSchema, match="wrong"):
        run("schema", "check", "stock-value", written(tmp_path / "wrong.avsc", '{"type": "wrong"}'))
    with pytest.raises(SchemaNotFound, match="Version 3 not found"):
        run("schema", "check", "stock-value", file, "--version", "3")


def test_a_schema_may_come_from_standard_input(registry: EmbeddedRegistry) -> None:
    words = ["schema", "check", "orders-value", "-"]
    done = CliRunner().invoke(command_line(words), [*words, "--kind", "AVRO"], input=order(ID))
    assert (done.exit_code, done.stdout.splitlines()[0]) == (
        0,
        "compatible: standard input with version 2 (the latest) of orders-value",
    )
    with pytest.raises(ConfigError, match="standard input: say --kind"):
        run(*words)


def test_an_unknown_kind_is_refused(registry: EmbeddedRegistry) -> None:
    done = run("schema", "check", "orders-value", "-", "--kind", "xml")
    assert done.exit_code == 2
    assert "--kind" in done.output


# Diff.


def test_a_file_is_compared_with_the_latest_version(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    file = written(tmp_path / "order.avsc", order(ID, TOTAL))
    done = run("schema", "diff", "orders-value", file)
    lines = done.output.splitlines()
    assert (done.exit_code, lines[:2]) == (1, ["--- orders-value version 2", f"+++ {file}"])
    assert {'-      "name": "note",', '+      "name": "total",'} <= set(lines)


def test_equal_schemas_end_the_comparison_with_0(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    file = written(tmp_path / "order", json.dumps(json.loads(order(ID, NOTE)), indent=8))
    done = run("schema", "diff", "orders-value", file)
    assert (done.exit_code, done.output) == (0, f"orders-value version 2 and {file} are equal\n")
    assert run("schema", "diff", "orders-value", file, "--version", "1").exit_code == 1


@pytest.mark.parametrize("words", [["1"], ["latest", "--version", "1"]], ids=" ".join)
def test_of_two_versions_the_older_one_comes_first(words: list[str], registry: EmbeddedRegistry) -> None:
    done = run("schema", "diff", "orders-value", *words)
    lines = done.output.splitlines()
    assert (done.exit_code, lines[:2]) == (1, ["--- orders-value version 1", "+++ orders-value version 2"])
    assert '+      "name": "note",' in lines


# Register.


def test_a_schema_is_registered_once(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    file = written(tmp_path / "order.avsc", order(ID))
    assert run("schema", "register", "stock-value", file).output == (
        f"stock-value: registered {file} as version 1, id 1\n"
    )
    assert run("schema", "register", "stock-value", file).output == (
        "stock-value has this schema already: version 1, id 1\n"
    )


def test_an_incompatible_schema_is_not_registered(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    done = run("schema", "register", "orders-value", written(tmp_path / "order.avsc", order(ID, TOTAL)))
    assert done.exit_code == 1
    assert done.output.startswith("not compatible: ")
    assert done.output.endswith("nothing was registered\n")
    assert "POST /subjects/orders-value/versions" not in registry.requests[-3:]


def test_a_trial_registers_nothing(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    done = run("schema", "register", "stock-value", written(tmp_path / "stock.proto", PROTO), "--dry-run")
    assert done.exit_code == 0
    assert done.output.startswith("compatible: stock-value has no version yet")
    assert done.output.endswith("nothing was registered\n")
    assert run("schema", "list", "stock", "--json").output == ""


def test_a_schema_is_registered_with_its_references(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    file = written(tmp_path / "batch.avsc", '{"type": "array", "items": "Order"}')
    with pytest.raises(InvalidSchema, match="Order"):
        run("schema", "register", "batches-value", file)
    run("schema", "register", "batches-value", file, "--reference", "Order=orders-value:2")
    document = json.loads(run("schema", "show", "batches-value", "--json").output)
    assert document["references"] == [{"name": "Order", "subject": "orders-value", "version": 2}]


# Failures.


@pytest.mark.parametrize("command", ["check", "register", "diff"])
def test_a_wrong_file_is_an_error(command: str, registry: EmbeddedRegistry, tmp_path: Path) -> None:
    with pytest.raises(AwokeError, match=r"none\.avsc: No such file"):
        run("schema", command, "orders-value", str(tmp_path / "none.avsc"))
    with pytest.raises(AwokeError, match=r"order\.avsc: no JSON"):
        run("schema", command, "orders-value", written(tmp_path / "order.avsc", "{"))


def test_an_unknown_subject_can_not_be_compared(registry: EmbeddedRegistry, tmp_path: Path) -> None:
    with pytest.raises(SchemaNotFound, match="'none' not found"):
        run("schema", "diff", "none", written(tmp_path / "order.avsc", order(ID)))


@pytest.mark.parametrize("words", [["list"], ["show", "orders-value"], ["diff", "orders-value", "1"]], ids=" ".join)
def test_a_registry_that_is_away_is_an_error(words: list[str], registry: EmbeddedRegistry) -> None:
    registry.set_up(False)
    with pytest.raises(RegistryUnavailable, match="503"):
        run("schema", *words)
    with pytest.raises(RegistryUnavailable, match="does not answer"):
        run("schema", *words, "--registry-url", "http://127.0.0.1:1")


def test_the_login_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedRegistry(user="ann", password="secret") as registry:
        with pytest.raises(RegistryUnauthorized, match="401"):
            run("schema", "list", "--registry-url", registry.url)
        monkeypatch.setenv("AWOKE_REGISTRY_USER", "ann")
        monkeypatch.setenv("AWOKE_REGISTRY_PASSWORD", "secret")
        assert run("schema", "list", "--registry-url", registry.url).exit_code == 0
