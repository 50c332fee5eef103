"""The console as a web application (ASGI): its routes, each of which checks the rights of a request."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import jinja2
import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from awoke.console.letters.runs import ReplayRuns
from awoke.console.web.cluster import Cluster
from awoke.console.web.code import UNKNOWN, Code
from awoke.console.web.grants import Grant, Policy, Rights, Role, view_only
from awoke.console.web.live import Live
from awoke.console.web.page import NO_RUNS, ActionRefused, Asked, Done, NoSuchPage, Page, PageAction, Wrong
from awoke.console.web.pages import (
    calls,
    commands,
    explorer,
    failures,
    groups,
    letters,
    overview,
    partitions,
    processes,
    routes,
    self_checks,
    tables,
    topics,
    transactions,
)
from awoke.console.web.rendering import Assets, environment, prepare
from awoke.console.web.security import Guard
from awoke.errors import AwokeError
from awoke.settings import Settings, load
from awoke.text.printable import harmless_json

FORM_BYTES_MAX = 1 << 20
COALESCING_S = 0.1
"""Changes within this time are told to a browser at once."""
TICK_S = 2.0
"""A browser is told to look again after this time without a change, or when brokers are late: ages and waits go on."""
THREADS = 8
"""The pages that may wait for brokers at once."""
STREAMS_MAX = 100
VIEWER_STREAMS_MAX = 25
"""The most streams of changes, and those of one viewer: a person who has logged in, or an address."""
FORM_WITHIN_S = 10.0
"""The most browsers that are told of changes at once; others load the page again by themselves."""
CONFIRMED = "sure"
"""The field of a form by which an operator confirms an action."""
CHANGE, REPLAY = "change", "replay"
"""The names of the events that browsers get."""
STATUS: dict[type[AwokeError], int] = {NoSuchPage: 404, Wrong: 400, ActionRefused: 403}
MODULES = (
    overview,
    partitions,
    transactions,
    routes,
    calls,
    tables,
    failures,
    letters,
    topics,
    explorer,
    groups,
    processes,
    commands,
    self_checks,
)
"""The modules of pages. Each has `PAGES`, and may have `ACTIONS`."""
PAGES: list[Page] = [page for module in MODULES for page in module.PAGES]
ACTIONS: list[PageAction] = [action for module in MODULES for action in getattr(module, "ACTIONS", ())]
ORDER = ("Now", "Work", "Kafka", "Processes")
SECTIONS: dict[str, list[Page]] = {name: [page for page in PAGES if page.section == name] for name in ORDER}
"""The navigation."""


class ConsoleParts(NamedTuple):
    """The parts of one console."""

    app: str
    settings: Settings
    live: Live
    rights: Rights
    assets: Assets
    templates: jinja2.Environment
    pool: ThreadPoolExecutor
    """The threads on which pages are made: they may wait for brokers."""
    code: Code = UNKNOWN
    cluster: Cluster | None = None
    replays: ReplayRuns = NO_RUNS


def asgi(
    app: Any,
    *,
    policy: Policy = view_only,
    verbs: Collection[str] = (),
    payloads: bool = False,
    hosts: Collection[str] = (),
    settings: Settings | None = None,
) -> Starlette:
    """Returns the console of an app, or of the app with this name, to be served or mounted. Opens nothing yet.

    `policy` gets the ASGI scope of a request and returns its `Role` or `Grant`; None refuses it. It runs on the event
    loop, and may be an `async def`. `verbs` are the actions that are allowed to the roles which may act (`"*"`: all).
    `payloads=True` shows keys, values and headers of messages. `hosts` are the names by which browsers may ask, beside
    IP addresses and localhost (`"*"`: any).
    """
    name = app if isinstance(app, str) else app.name
    found = settings if settings is not None else load({}).values if isinstance(app, str) else app.settings
    code = UNKNOWN if isinstance(app, str) else Code.of(app)
    return application(name, found, Live(name, found), Rights(policy, verbs, payloads), hosts, code)


def application(
    name: str, settings: Settings, live: Live, rights: Rights, hosts: Collection[str], code: Code = UNKNOWN
) -> Starlette:
    """Returns the console with its parts."""
    pool = ThreadPoolExecutor(THREADS, "awoke-console-page")
    cluster, replays = Cluster(settings), ReplayRuns()
    parts = ConsoleParts(name, settings, live, rights, Assets(), environment(), pool, code, cluster, replays)
    routes = [Route("/static/{name:path}", Static(parts)), Route("/live", CheckedChanges(parts))]
    routes += [Route(each.path, CheckedPage(parts, each), methods=["GET"]) for each in PAGES]
    routes += [Route(each.path, Acted(parts, each), methods=["POST"]) for each in ACTIONS]

    @contextlib.asynccontextmanager
    async def run(web: Starlette) -> AsyncIterator[None]:
        live.start()
        pool.submit(prepare, parts.templates)  # While the brokers answer.
        try:
            yield
        finally:
            for each in (live, replays, cluster):
                await asyncio.get_running_loop().run_in_executor(pool, each.close)
            pool.shutdown()

    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts)], lifespan=run)


class Checked:
    """An endpoint that answers only requests with rights. Each route of the console is one."""

    methods = ("GET",)
    role = Role.VIEW

    def __init__(self, parts: ConsoleParts) -> None:
        self.parts = parts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request."""
        request = Request(scope, receive)
        grant = await self.parts.rights.of(scope)
        if request.method not in (*self.methods, "HEAD"):
            response = self.failed(request, Grant(), Wrong("this method is not allowed"), 405)
        elif grant is None or grant.role < self.role:
            response = self.failed(
                request, Grant(), ActionRefused("you may not do this: ask the console's operator"), 403
            )
        else:
            try:
                check_text(request.path_params)
                response = await self.answer(request, grant)
            except AwokeError as error:
                status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 502)
                response = self.failed(request, grant, error, status)
            except ClientDisconnect:
                return
        await response(scope, receive, send)

    async def answer(self, request: Request, grant: Grant) -> Response:
        """Returns the answer to a request that has the role."""
        raise NotImplementedError

    async def on_thread(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """Calls a function that may block, on a thread of the pool."""
        return await asyncio.get_running_loop().run_in_executor(self.parts.pool, function, argument)

    def failed(self, request: Request, grant: Grant, error: AwokeError, status: int) -> Response:
        """Returns the page of an error."""
        done = Done(text=str(error), is_failed=True)
        return self.write(request, self.asked(request, grant), done, "answer.html", status)

    def asked(
        self, request: Request, grant: Grant, form: Mapping[str, str] | None = None, page: Page | None = None
    ) -> Asked:
        """Returns a request as the function of a page sees it."""
        parts = self.parts
        query = {name: value[:10_000] for name, value in request.query_params.items()}
        prefix = request.scope.get("root_path", "").rstrip("/")
        path = {name: str(value) for name, value in request.path_params.items()}
        return Asked(
            *(parts.app, parts.settings, grant, path, query, form or {}, parts.live, prefix, page, parts.code),
            cluster=parts.cluster,
            replays=parts.replays,
        )

    def write(self, request: Request, asked: Asked, model: Any, template: str, status: int = 200) -> Response:
        """Returns a view model as JSON or as HTML, as the request wants it."""
        headers = {"Vary": "Accept"}
        if wants_json(request):
            text = harmless_json(msgspec.json.encode(model).decode())
            return Response(text, status, headers, media_type="application/json")
        templates = self.parts.templates
        url = partial(self.url, asked.prefix)
        text = templates.get_template(template).render(
            page=model,
            asked=asked,
            url=url,
            asset=self.parts.assets.path,
            sections=SECTIONS,
            path=request.url.path,
        )
        return HTMLResponse(text, status, headers)

    def done(self, request: Request, asked: Asked, done: Done) -> Response:
        """Returns the answer to an action; a browser goes on to the page of one that has only begun."""
        if done.is_begun and not wants_json(request):
            return RedirectResponse(self.url(asked.prefix, done.back), 303)
        status = 409 if done.is_failed else 202 if done.is_begun else 200
        return self.write(request, asked, done, "answer.html", status)

    @staticmethod
    def url(prefix: str, path: str) -> str:
        """Returns the path of a page below the console's own."""
        return prefix + path


def wants_json(request: Request) -> bool:
    """Tells whether the answer to a request is for a program."""
    wants = request.headers.get("accept", "").partition(",")[0].partition(";")[0].strip()
    return wants == "application/json" or request.query_params.get("format") == "json"


def check_text(fields: Mapping[str, str]) -> None:
    """Refuses a NUL: no name has one, and libraries in C would end the text there.

    Raises:
        Wrong: There is one.
    """
    for name, text in fields.items():
        if "\0" in text:
            raise Wrong(f"{name[:40]!r} has a NUL")


def check_confirmed(form: Mapping[str, str]) -> None:
    """Refuses an action whose operator has not said "I am sure", whatever the form in the browser has demanded.

    Raises:
        Wrong: The form has no confirmation.
    """
    if form.get(CONFIRMED) != "on":
        raise Wrong(f'this action needs its confirmation: "I am sure" ({CONFIRMED}=on)')


class Static(Checked):
    """A file of the console itself."""

    async def answer(self, request: Request, grant: Grant) -> Response:
        """Returns a file by its hashed name."""
        return self.parts.assets.answer(request.path_params["name"])


class CheckedPage(Checked):
    """A page."""

    def __init__(self, parts: ConsoleParts, page: Page) -> None:
        super().__init__(parts)
        self.page, self.role = page, page.role

    async def answer(self, request: Request, grant: Grant) -> Response:
        """Returns the page; its function may block a thread of the pool."""
        asked = self.asked(request, grant, page=self.page)
        check_text(asked.query)
        if inspect.iscoroutinefunction(self.page.function):
            model = await self.page.function(asked)
        else:
            model = await self.on_thread(self.page.function, asked)
        return model if isinstance(model, Response) else self.write(request, asked, model, self.page.template)


class Acted(Checked):
    """A change of the app or the cluster."""

    methods = ("POST",)

    def __init__(self, parts: ConsoleParts, action: PageAction) -> None:
        super().__init__(parts)
        self.action, self.role = action, action.role

    async def _body(self, request: Request) -> bytes:
        body = b""
        try:
            async with asyncio.timeout(FORM_WITHIN_S):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > FORM_BYTES_MAX:
                        raise Wrong("the form is too large")
        except TimeoutError:
            raise Wrong(f"the form has not come within {FORM_WITHIN_S:.0f} s") from None
        return body

    async def answer(self, request: Request, grant: Grant) -> Response:
        """Makes the change, and returns its answer."""
        if not grant.allows(self.action.verb, self.action.role):
            raise ActionRefused(f"this console does not allow {self.action.verb!r} (--allow)")
        body = await self._body(request)
        form = dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=1_000))
        asked = self.asked(request, grant, form)
        check_text({**asked.query, **asked.form})
        check_confirmed(asked.form)
        try:
            done = await self.on_thread(self.action.function, asked)
        finally:
            if self.parts.cluster is not None:
                self.parts.cluster.forget()
        return self.done(request, asked, done)


class CheckedChanges(Checked):
    """Tells a browser of changes, by server-sent events: `change`, or `replay` if only a replay went on."""

    def __init__(self, parts: ConsoleParts) -> None:
        super().__init__(parts)
        self._streams = Counter[str]()
        """The streams of each viewer."""

    async def answer(self, request: Request, grant: Grant) -> Response:
        """Returns a stream without end."""
        viewer = f"who {grant.who}" if grant.who else f"at {request.client.host if request.client else ''}"
        if self._streams[viewer] >= VIEWER_STREAMS_MAX or self._streams.total() >= STREAMS_MAX:
            raise ActionRefused("too many browsers look at once")
        return StreamingResponse(self._events(viewer), media_type="text/event-stream")

    async def _events(self, viewer: str = "") -> AsyncGenerator[str, None]:
        live, loop, changed = self.parts.live, asyncio.get_running_loop(), asyncio.Event()
        ended, names = threading.Event(), set[str]()

        def take(name: str) -> None:
            names.add(name)
            changed.set()

        def tell(name: str) -> None:
            with contextlib.suppress(RuntimeError):  # The loop is closed.
                if not ended.is_set() and name not in names:  # It is told once for many records.
                    loop.call_soon_threadsafe(take, name)

        unsubscribe = [
            live.subscribe(partial(tell, CHANGE)),
            self.parts.replays.subscribe(partial(tell, REPLAY)),
        ]
        self._streams[viewer] += 1
        try:
            await self.on_thread(lambda _: live.start(), None)
            yield "retry: 2000\n\n"
            while not live.is_closed:
                late_in_s = live.late_in_s()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(TICK_S if late_in_s is None else min(TICK_S, late_in_s)):
                        await changed.wait()
                await asyncio.sleep(COALESCING_S)
                name = REPLAY if names == {REPLAY} else CHANGE
                changed.clear()
                names.clear()
                live.refresh()
                yield f"event: {name}\ndata: -\n\n"
        finally:
            ended.set()
            self._streams -= Counter((viewer,))  # It keeps none of zero.
            for call in unsubscribe:
                call()
