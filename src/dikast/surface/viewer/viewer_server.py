"""The server of the viewer: it listens on loopback, shows pages, and writes nothing but notes."""

import asyncio
import threading
from collections.abc import Callable

from aiohttp import web

from dikast.annotation.own_pages import form_of, guard, html, serve_pages
from dikast.core.errors import RunError, UserError
from dikast.serving.delivery import LOOPBACK
from dikast.surface.viewer.index_tables import DamagedIndex
from dikast.surface.viewer.item_notes import add_note, take_back
from dikast.surface.viewer.run_index import RunIndex, keep_reading
from dikast.surface.viewer.viewer_pages import NotHere, ViewerPages, link, policy


class ViewerServer:
    """Pages of the runs in an index. What is behind is read in a thread of its own."""

    def __init__(self, index: RunIndex, port: int = 0) -> None:
        self.pages, self.port = ViewerPages(index), port
        self.stopping = asyncio.Event()

    async def run(self, ready: Callable[[int], None] = lambda port: None) -> None:
        """Serve until SIGTERM or SIGINT. UserError where the port is taken."""
        application = web.Application(client_max_size=64 * 1024, middlewares=[guard(policy(), LOOPBACK)])
        application.add_routes([
            web.get("/", self._shown(lambda request: self.pages.runs(request.query))),
            web.get("/run", self._shown(lambda request: self.pages.run(request.query))),
            web.get("/item", self._shown(lambda request: self.pages.item(request.query))),
            web.get("/compare", self._shown(
                lambda request: self.pages.compare(request.query, request.query.getall("run", []))
            )),
            web.post("/note", self._note), web.post("/note/back", self._note),
        ])  # fmt: skip
        over = threading.Event()
        reading = threading.Thread(target=keep_reading, args=(self.pages.index, over), daemon=True)
        reading.start()
        try:
            await serve_pages(application, "127.0.0.1", self.port, self.stopping, ready)
        finally:
            over.set()
            await asyncio.to_thread(reading.join)

    def _shown(self, page: Callable[[web.Request], str]) -> Callable[[web.Request], "asyncio.Future[web.Response]"]:
        async def answer(request: web.Request) -> web.Response:
            try:
                try:
                    return html(await asyncio.to_thread(page, request))
                except DamagedIndex:  # it has been begun anew
                    return html(await asyncio.to_thread(page, request))
            except (UserError, RunError) as error:
                found = html(self.pages.problem(str(error)))
                found.set_status(404 if isinstance(error, NotHere) else 400)
                return found

        return answer  # type: ignore[return-value]

    async def _note(self, request: web.Request) -> web.StreamResponse:
        given = await form_of(request)
        run, at, text, note = (str(given.get(name, "")) for name in ("run", "at", "text", "note"))
        try:
            folder, item = await asyncio.to_thread(self.pages.item_of, run, at)
            if request.path == "/note":
                await asyncio.to_thread(add_note, folder, item, text)
            else:
                await asyncio.to_thread(take_back, folder, note)
        except (UserError, RunError) as error:
            found = html(self.pages.problem(str(error)))
            found.set_status(404 if isinstance(error, NotHere) else 400)
            return found
        raise web.HTTPSeeOther(link("/item", run=run, at=at))
