"""A pod without Kubernetes: a container of the generated Deployment, made of Linux namespaces.

It has the Deployment's user, environment and volumes, a root that can't be written, no capabilities, and process 1.
What it does not have: an image (it sees this machine's files), a network of its own, and limits.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from awoke.operate.deploy.manifests import DeployedApp, dockerfile, kubernetes
from tests.support.processes import REPOSITORY, Process

WORK = "/srv"
"""The place of the image's WORKDIR: the root has no folder of that name, and none can be made in it."""


def can_play() -> bool:
    """Tells whether this machine lets the tests make namespaces."""
    made = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "true")
    if os.getuid() != 0 or shutil.which("setpriv") is None or shutil.which("unshare") is None:
        return False
    return subprocess.run(made, capture_output=True, check=False).returncode == 0


def service_links(services: int) -> Iterator[tuple[str, str]]:
    """Gives the variables of services that Kubernetes sets in a pod; some have names of awoke's settings."""
    names = ["awoke", "awoke-kafka", "awoke-metrics", "awoke-workers", "kubernetes"]
    for number, service in enumerate([*names, *(f"awoke-shop-{each}" for each in range(services - len(names)))]):
        name, host = service.upper().replace("-", "_"), f"10.96.0.{number + 1}"
        yield f"{name}_SERVICE_HOST", host
        yield f"{name}_SERVICE_PORT", "9092"
        yield f"{name}_SERVICE_PORT_CLIENT", "9092"
        yield f"{name}_PORT", f"tcp://{host}:9092"
        yield f"{name}_PORT_9092_TCP", f"tcp://{host}:9092"
        yield f"{name}_PORT_9092_TCP_PROTO", "tcp"
        yield f"{name}_PORT_9092_TCP_PORT", "9092"
        yield f"{name}_PORT_9092_TCP_ADDR", host


class Pod:
    """The pod of an app whose files are in a folder. A context manager: its exit kills all of its processes."""

    def __init__(self, app: DeployedApp, folder: Path, more: Mapping[str, str]) -> None:
        (found, _) = yaml.safe_load_all(kubernetes(app, "shop:1"))
        spec = found["spec"]["template"]["spec"]
        (self._container,) = spec["containers"]
        self._user = spec["securityContext"]["runAsUser"]
        given = {each["name"]: each["value"] for each in self._container["env"]}
        # What Kubernetes sets itself gives way to what the container says.
        self._env = dict(service_links(20)) | self._of_image(app) | dict(more) | given
        command = f"exec {self._as_user()} {sys.executable} -m awoke run {' '.join(self._container['args'])}"
        script = "\n".join(["set -e", *self._mounts(folder), command])
        unshare = ("--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--propagation", "private")
        self.process = Process("-c", START, *unshare, "sh", "-c", script, program=())

    def _of_image(self, app: DeployedApp) -> dict[str, str]:
        """The environment of the Dockerfile. A user without an entry in passwd has / as its home."""
        (line,) = (each for each in dockerfile(app).splitlines() if each.startswith("ENV "))
        words = dict(word.split("=", 1) for word in line.removeprefix("ENV ").split())
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return words | {"PATH": path, "HOME": "/", "HOSTNAME": "shop-5d8f7-x2x9k", "PYTHONPATH": str(REPOSITORY)}

    def _as_user(self) -> str:
        """The words that start a program as the container's user: with no capability, and none to come."""
        context: Any = self._container["securityContext"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"]["drop"] == ["ALL"]
        user = ("--reuid", str(self._user), "--regid", str(self._user), "--clear-groups")
        words = ("setpriv", *user, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "env", "-i")
        return shlex.join([*words, *(f"{name}={value}" for name, value in self._env.items())])

    def _mounts(self, folder: Path) -> Iterator[str]:
        """The commands that make the container's file system; this machine's own folders stay as they are."""
        assert self._container["securityContext"]["readOnlyRootFilesystem"]
        volumes = [mount["mountPath"] for mount in self._container["volumeMounts"]]
        yield f"mount --bind {shlex.quote(str(folder))} {WORK}"
        # Python and awoke may be in the home of another user, which this one may not enter, or below a volume.
        kept = list(dict.fromkeys((sys.base_prefix, sys.prefix, str(REPOSITORY))))
        closed = {str(closed) for place in kept for closed in Path(place).parents if not closed.stat().st_mode & 0o001}
        yield "mount -t tmpfs none /mnt"
        for number, place in enumerate(kept):
            yield f"mkdir /mnt/{number} && mount --bind {place} /mnt/{number}"
        for each in sorted(closed):
            yield f"mount -t tmpfs -o mode=755 none {each}"
        for volume in volumes:
            yield f"mount -t tmpfs -o mode=0777 none {volume}"  # As an emptyDir: without the sticky bit.
        for number, place in enumerate(kept):
            if any(place.startswith(f"{each}/") for each in (*closed, *volumes)):
                yield f"mkdir -p {place} && mount --bind /mnt/{number} {place}"
        yield f"mount -o remount,ro,bind / && mount -o remount,ro,bind {WORK} && cd {WORK}"

    def exec(self, *words: str, folder: str = WORK) -> subprocess.CompletedProcess[str]:
        """Runs a command beside process 1, as `kubectl exec` does. Blocks."""
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--pid", "sh", "-c"]
        command = f"cd {folder} && exec {self._as_user()} {shlex.join(words)}"
        return subprocess.run([*enter, command], capture_output=True, text=True, check=False, timeout=120)

    def awoke(self, *words: str, folder: str = WORK) -> subprocess.CompletedProcess[str]:
        """Runs a command of awoke's beside process 1. Blocks."""
        return self.exec(sys.executable, "-m", "awoke", *words, folder=folder)

    @property
    def port(self) -> int:
        """The port at which the probes ask."""
        return int(self._container["ports"][0]["containerPort"])

    @property
    def pid(self) -> int:
        """Process 1 of the pod, as this machine numbers it."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def __enter__(self) -> Pod:
        return self

    def __exit__(self, *error: Any) -> None:
        self.process.__exit__(*error)


START = "import os, sys; os.execvp('unshare', ['unshare', *sys.argv[1:]])"
