"""Files that run an app: a Kubernetes Deployment, a KEDA ScaledObject, a systemd unit, a Dockerfile.

Their numbers come from the settings of the app: a stop must be given the time that the app needs for it.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from awoke.operate.deploy.expressions import seconds_of_work
from awoke.settings import RunSettings, Settings
from awoke.text.exit_codes import EXIT_CONFIGURATION, EXIT_USAGE

AFTER_DEADLINE_S = 10.0
"""A stop may take this much longer than its deadline: shutdown functions, producers and clients have a second each."""
ALIVE_EVERY_S, ALIVE_FAILURES = 10, 12
"""A process that does not answer at all for two minutes is killed: that is no broker, and no lag."""
PORT = 9404


class DeployedApp(NamedTuple):
    """An app that is to be deployed."""

    target: str
    """As in shop:app."""
    name: str
    settings: Settings
    run: RunSettings

    @property
    def id(self) -> str:
        """Its name for Kubernetes: lower case, digits and hyphens."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:50] or "app"

    @property
    def port(self) -> int:
        """The port of metrics and health."""
        return self.settings.metrics_port or PORT

    @property
    def workers(self) -> int:
        """The threads of all its processes that run handlers."""
        return (self.settings.workers or 4) * (self.run.nodes or 1)

    @property
    def stop_s(self) -> int:
        """The time that a stop may take, in seconds."""
        of_app = self.settings.shutdown_timeout_s
        longest_s = of_app if self.run.nodes is None else max(of_app, self.run.drain_timeout_s)
        return math.ceil(longest_s + AFTER_DEADLINE_S)

    @property
    def start_s(self) -> int:
        """The time that a start may take, in seconds."""
        return math.ceil(self.settings.startup_timeout_s + 60)


def kubernetes(app: DeployedApp, image: str, replicas: int = 2) -> str:
    """Returns a Deployment and a PodDisruptionBudget.

    Neither lag nor absent brokers end a process: `/live` asks only whether it answers.
    """
    return f"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: {app.id}
  labels: {{app.kubernetes.io/name: {app.id}}}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app.kubernetes.io/name: {app.id}}}
  strategy:
    # One process after another: each change of members is a rebalance.
    rollingUpdate: {{maxSurge: 0, maxUnavailable: 1}}
  template:
    metadata:
      labels: {{app.kubernetes.io/name: {app.id}}}
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "{app.port}"
    spec:
      # shutdown_timeout_s or drain_timeout_s, and {AFTER_DEADLINE_S:g} s to close what is left.
      terminationGracePeriodSeconds: {app.stop_s}
      securityContext: {{runAsNonRoot: true, runAsUser: 10001, seccompProfile: {{type: RuntimeDefault}}}}
      containers:
        - name: app
          image: "{image}"
          args: ["{app.target}"]
          env:
            - {{name: AWOKE_METRICS_HOST, value: "0.0.0.0"}}
            - {{name: AWOKE_METRICS_PORT, value: "{app.port}"}}
            - {{name: AWOKE_LOG_FORMAT, value: json}}
            - {{name: AWOKE_SOCKET, value: /tmp/awoke.sock}}
          ports:
            - {{name: metrics, containerPort: {app.port}}}
          startupProbe:
            httpGet: {{path: /live, port: metrics}}
            periodSeconds: 2
            failureThreshold: {math.ceil(app.start_s / 2)}
          livenessProbe:
            # Not /health: a restart brings no broker back, and makes lag longer.
            httpGet: {{path: /live, port: metrics}}
            periodSeconds: {ALIVE_EVERY_S}
            timeoutSeconds: 5
            failureThreshold: {ALIVE_FAILURES}
          readinessProbe:
            httpGet: {{path: /ready, port: metrics}}
            periodSeconds: 5
            timeoutSeconds: 5
          resources:
            requests: {{cpu: 500m, memory: 512Mi}}
            limits: {{memory: 512Mi}}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {{drop: [ALL]}}
          volumeMounts:
            - {{name: tmp, mountPath: /tmp}}
      volumes:
        - {{name: tmp, emptyDir: {{}}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {app.id}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{app.kubernetes.io/name: {app.id}}}
"""


class Scale(NamedTuple):
    """The bounds of scaling."""

    prometheus: str
    """The address of Prometheus."""
    work_s: float = 60.0
    """The work that may wait for each worker, in seconds."""
    replicas_max: int = 10
    """At most the number of partitions: more have nothing to do."""


def keda(app: DeployedApp, scale: Scale) -> str:
    """Returns a ScaledObject that scales by seconds of work: a thousand quick messages need no process more.

    It never scales to 0: the lag is measured by the processes themselves.
    """
    query = f"sum({seconds_of_work('30m')}) or vector(0)"
    return f"""apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {app.id}
spec:
  scaleTargetRef: {{name: {app.id}}}
  minReplicaCount: 1
  maxReplicaCount: {scale.replicas_max}
  pollingInterval: 30
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleUp: {{stabilizationWindowSeconds: 60}}
        scaleDown: {{stabilizationWindowSeconds: 600}}
  triggers:
    - type: prometheus
      metricType: AverageValue
      metadata:
        serverAddress: "{scale.prometheus}"
        # Seconds that one worker would need for all that waits.
        query: >-
          {query}
        # {scale.work_s:g} s for each of the {app.workers} workers of a pod.
        threshold: "{scale.work_s * app.workers:g}"
"""


def systemd(app: DeployedApp, folder: str) -> str:
    """Returns a unit for an app in this folder, whose virtual environment is `.venv` there."""
    reload = "ExecReload=/bin/kill -HUP $MAINPID\n" if app.run.nodes is not None else ""
    return f"""[Unit]
Description={app.name} (awoke)
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=exec
DynamicUser=yes
WorkingDirectory={folder}
RuntimeDirectory=awoke-{app.id}
Environment=AWOKE_SOCKET=%t/awoke-{app.id}/socket AWOKE_METRICS_PORT={app.port}
EnvironmentFile=-/etc/awoke/{app.id}.env
ExecStart={folder}/.venv/bin/awoke run {app.target}
{reload}KillMode=mixed
KillSignal=SIGTERM
TimeoutStopSec={app.stop_s}
Restart=on-failure
RestartSec=2
RestartPreventExitStatus={EXIT_USAGE} {EXIT_CONFIGURATION}
LimitNOFILE=65536
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict
ProtectHome=yes

[Install]
WantedBy=multi-user.target
"""


def dockerfile(app: DeployedApp, python: str = "3.13") -> str:
    """Returns a Dockerfile: a slim image without build tools, whose process is not root and gets the signals itself."""
    return f"""FROM python:{python}-slim AS build
WORKDIR /app
RUN python -m venv /venv
COPY requirements.txt .
RUN /venv/bin/pip install --no-cache-dir -r requirements.txt

FROM python:{python}-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin awoke
COPY --from=build /venv /venv
WORKDIR /app
COPY . .
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001
STOPSIGNAL SIGTERM
EXPOSE {app.port}
ENTRYPOINT ["awoke", "run"]
CMD ["{app.target}"]
"""
