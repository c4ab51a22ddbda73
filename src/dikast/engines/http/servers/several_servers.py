"""The engine of a model that several servers have."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

from dikast.core.errors import EngineError, UserError
from dikast.engines.base import Engine
from dikast.engines.http.answer import Answers
from dikast.engines.http.engine import Contract, HttpEngine, Waits, transport_to, within_budget
from dikast.engines.http.event_loop import EventLoopThread
from dikast.engines.http.providers import PLAIN, Provider
from dikast.engines.http.retrying import About, Desk
from dikast.engines.http.server_settings import Address, ServerSettings, key_from
from dikast.engines.http.servers.server_list import Location, ServerList, from_file, resolved, several
from dikast.engines.http.servers.server_pool import ServerPool
from dikast.engines.options import read_options, spec_with


class SeveralServers(HttpEngine):
    """One model behind several servers, with one queue and a limit of requests in flight for each.

    The options are those of one server; `concurrency` applies to each. A parameter that one server refuses (see
    `noticed`) is sent to none. The keys of verdicts hold the list (`server=NAME` replaces it), and each verdict names
    the server that answered.
    """

    def __init__(
        self,
        listed: ServerList,
        address: Address,
        settings: ServerSettings,
        *,
        key: str = "",
        name: str = "",
        spec: str = "",
    ) -> None:
        self._listed, self._began, self._beginning = listed, False, threading.Lock()
        super().__init__(address, settings, key=key, name=name or f"{listed.name}#{address.model}", spec=spec)

    def _begin(self, contract: Contract, key: str) -> None:
        settings, model, base = self.settings, self.address.model, self.address.url
        _, asks, reads, _ = contract
        assert isinstance(reads, Answers)

        def desk(place: Location) -> Desk:
            url = place.url + contract.url.removeprefix(base)
            transport = transport_to(url, settings, PLAIN, key, place.host)
            about = About(PLAIN, model, f"{place.url}/models", reads.is_model)
            return Desk(transport, asks, reads, settings, about)

        self._desk = desk(Location(base))  # builds the bodies; requests are sent by the desks of the pool
        reads.scrub = self._desk.transport.scrub
        pool = self._pool = ServerPool(self._listed, desk, settings.concurrency)
        self._loop_thread = pool.thread = EventLoopThread(pool, opening=lambda: None, closing=pool.close)

    def _ready(self) -> None:
        with self._beginning:
            if not self._began:
                loop = self._loop_thread.loop
                assert loop is not None
                asyncio.run_coroutine_threadsafe(self._pool.begin(), loop).result()
                self._began = True

    def identity(self) -> Mapping[str, Any]:
        """As for one server, with the list in the place of its address."""
        return {**super().identity(), "server": self.settings.server or self._listed.name}

    @property
    def notes(self) -> Mapping[str, int]:
        """Notes on servers that were down or refused, and requests that were moved."""
        return dict(self._pool.notes)

    @property
    def waits(self) -> Waits:
        """How long requests waited before retries, over all servers."""
        desks = [each.desk for each in self._pool.servers]
        return Waits(max((each.longest_wait for each in desks), default=0.0), sum(each.waited for each in desks))

    @property
    def gave_up(self) -> EngineError | None:
        """Why the engine gave up: the error of the last server tried."""
        return next((each.desk.gave_up for each in self._pool.servers if each.desk.gave_up), None)

    @property
    def status(self) -> str:
        """Which servers are down, or the reason for waiting before a retry."""
        return self._pool.status() or next((each.desk.status for each in self._pool.servers if each.desk.status), "")


def open_servers(target: str, **options: Any) -> Engine:
    """`servers:FILE#MODEL`: the addresses in a file, one per line, reread while the engine is used."""
    address, listed = from_file(target)
    return _opened(listed, address, _settings(options, listed.name), spec_with(f"servers:{target}", options))


def open_several(text: str, options: Mapping[str, Any]) -> Engine:
    """`http://A/v1,http://B/v1#MODEL`."""
    address, listed = several(text)
    return _opened(listed, address, _settings(options, listed.name), spec_with(text, options))


def open_resolved(address: Address, settings: ServerSettings, provider: Provider, spec: str) -> Engine:
    """The machines that the host of one address leads to."""
    if provider is not PLAIN:
        raise UserError("resolve=yes is for servers of your own: write their address, http://HOST:PORT/v1#MODEL")
    return _opened(resolved(address), address, settings, spec)


def _settings(options: Mapping[str, Any], where: str) -> ServerSettings:
    settings = ServerSettings(**read_options(options, ServerSettings.known(), where=where))
    if settings.resolve:
        raise UserError(f"{where}: resolve=yes goes with one address; here the servers are listed")
    return settings


def _opened(listed: ServerList, address: Address, settings: ServerSettings, spec: str) -> Engine:
    engine = SeveralServers(listed, address, settings, key=key_from(settings.key_env), spec=spec)
    return within_budget(engine, settings, engine.price)
