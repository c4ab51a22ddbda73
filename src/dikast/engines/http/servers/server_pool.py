"""Load balancing: which of several servers a request goes to.

Requests about one item go to one server, chosen by rendezvous hashing, so that their common prefix is in its prefix
cache; adding or removing a server moves only that server's share. An idle server steals work from the one with the
longest queue, whole items at a time. A server that fails gets no requests until it answers a health check.
"""

import asyncio
import hashlib
import math
import random
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dikast.core.errors import UserError
from dikast.engines.base import Completion
from dikast.engines.http.event_loop import EventLoopThread, Job, Lane, Later
from dikast.engines.http.failure import Failure
from dikast.engines.http.limit import Limit
from dikast.engines.http.retrying import Desk
from dikast.engines.http.servers.server_list import Location, ServerList

_ROW = 3  # consecutive failures after which a server counts as down
_REPROBE, _LONGEST = 0.5, 15.0  # seconds before the first health check of a server that is down, and between later ones
_REREAD = 2.0  # seconds between two readings of a list that may change
_HOMES = 1 << 16  # number of items whose server is remembered
_FULL = 2  # queue length, as a multiple of its limit, above which items go to another server
_SERVER_WIDE = ("timeout", "connection", "server_error", "bad_response", "wrong_model", "internal")
Maker = Callable[[Location], Desk]


class PooledServer:
    """One server: its desk, its lane, and its health. `state` is `up`, `down`, `wrong` (another model) or `left`."""

    def __init__(self, place: Location, desk: Desk, pool: "ServerPool", most: int) -> None:
        self.place, self.desk, self.pool, self.most = place, desk, pool, most
        self.lane = Lane(self.work, Limit(most))
        self.state, self.why = "up", ""
        self.row = self.probes = self.served = 0  # consecutive failures, consecutive health checks, answered requests
        desk.elsewhere = self.elsewhere
        self._seed = place.url.encode()

    def weight(self, item: str) -> bytes:
        """The weight in rendezvous hashing: the server with the largest takes the item."""
        return hashlib.blake2b(item.encode("utf-8", "surrogatepass"), key=self._seed[:64], digest_size=8).digest()

    @property
    def load(self) -> float:
        """Queued requests and requests in flight, as a multiple of its limit."""
        return (len(self.lane.queue) + self.lane.active) / max(1, self.lane.limit.value)

    async def work(self, job: Job) -> Completion | Later:
        """One attempt at this server."""
        outcome = await self.desk.work(job)
        if isinstance(outcome, Later):
            return outcome
        if outcome.error is None:
            self.row = self.probes = 0
            self.served += 1
            if self.state != "up" or not self.pool.answered:
                self.pool.came_up(self)
        elif not outcome.error.sent:
            return outcome
        return replace(outcome, server=self.place.url)

    def elsewhere(self, job: Job, failure: Failure) -> Later | None:
        """Move a failed request to another server; None if this one should retry it, or fail."""
        if not (failure.retryable or failure.hopeless):
            return None
        if failure.rejected:
            if (others := self.pool.others(self)) and any(each.lane.room() > 0 for each in others):
                job.tries += 1
                job.rejections += 1
                job.avoid = self.lane
                return Later(0.0, rejected=True, rest=failure.wait or 0.1)
            return None
        if failure.kind in _SERVER_WIDE or failure.hopeless:
            self.row += 1
            if failure.kind == "wrong_model" and self.row >= _ROW and not self.served:
                self.pool.went_down(self, "wrong", failure.message)
            elif failure.unreached or failure.hopeless or self.row >= _ROW:
                self.pool.went_down(self, "down", failure.message)
        others = self.pool.others(self)
        faults = job.tries - job.rejections
        if not others or faults >= self.desk.settings.retries or (faults + 1) % (len(others) + 1) == 0:
            return None
        job.tries += 1
        job.avoid = self.lane
        self.pool.notes[f"{self.place.url}: {failure.kind}: its requests were moved to another server"] += 1
        return Later(0.0)


class ServerPool:
    """The servers of one engine, as the routes of its event loop. All but the constructor runs in the loop's thread."""

    def __init__(self, listed: ServerList, make: Maker, most: int) -> None:
        self.listed, self._make, self._most = listed, make, most
        self.servers: list[PooledServer] = []
        self.lanes: Sequence[Lane] = ()
        self.notes: Counter[str] = Counter()
        self.answered = False
        self.thread: EventLoopThread | None = None
        self._gone: list[PooledServer] = []
        self._homes: OrderedDict[str, PooledServer] = OrderedDict()
        self._probes: dict[PooledServer, asyncio.Task[None]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._jitter = random.Random()  # spreads probes over time; no answer depends on it

    @property
    def live(self) -> list[PooledServer]:
        """The servers in use; if none is up, all that were not refused."""
        up = [each for each in self.servers if each.state == "up"]
        return up or [each for each in self.servers if each.state == "down"] or self.servers

    def others(self, server: PooledServer) -> list[PooledServer]:
        """The other servers that are up."""
        return [each for each in self.servers if each is not server and each.state == "up"]

    async def begin(self) -> None:
        """Check which servers answer and have the model. UserError for one with another model, before any call."""
        if self._watch is not None:
            return
        await self._take(await self.listed.read())
        looks = await asyncio.gather(*(each.desk.look() for each in self.servers))
        wrong = [f"{s.place.url} {told}" for s, (_, told) in zip(self.servers, looks, strict=True) if told]
        if wrong:
            raise UserError(f"servers of one run have the same model: {'; '.join(wrong)}: take it from the list")
        if any(there for there, _ in looks):
            for server, (there, _) in zip(self.servers, looks, strict=True):
                if not there:
                    self.went_down(server, "down", "cannot be reached")
        self._watch = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Stop health checks and close connections."""
        tasks = [*self._probes.values(), *([self._watch] if self._watch else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for server in (*self.servers, *self._gone):
            await server.desk.transport.close()

    def place(self, job: Job) -> Lane:
        """The lane of the item's server, or of the least loaded one if that is overloaded."""
        item = str(job.request.about.get("item") or job.request.key)
        live = self.live
        if len(live) > 1 and job.avoid is not None:
            live = [each for each in live if each.lane is not job.avoid]
        home = self._homes.get(item)
        if home is None or home not in live:
            home = max(live, key=lambda each: each.weight(item))
        if len(home.lane.queue) > _FULL * home.lane.limit.value + 8:
            least = min(live, key=lambda each: each.load)
            home = least if 2 * least.load < home.load else home
        self._settle(item, home)
        return home.lane

    def refill(self, lane: Lane) -> None:
        """Steal whole items, up to half of the queue, from the server with the longest queue beyond its limit."""
        mine = next((each for each in self.servers if each.lane is lane and each.state == "up"), None)
        if mine is None or lane.queue:
            return
        victim, most = None, 0
        for each in self.servers:
            spare = len(each.lane.queue) - (max(0, each.lane.room()) if each.state == "up" else 0)
            if each is not mine and spare > most:
                victim, most = each, spare
        if victim is None:
            return
        wanted, taken, last = min(max(1, lane.room()), math.ceil(most / 2)), deque[Job](), ""
        queue = victim.lane.queue
        while queue and len(taken) < most:
            item = str(queue[-1].request.about.get("item") or queue[-1].request.key)
            if len(taken) >= wanted and item != last:
                break
            taken.appendleft(queue.pop())
            self._settle(item, mine)
            last = item
        lane.queue.extend(taken)

    def _settle(self, item: str, home: PooledServer) -> None:
        self._homes[item] = home
        self._homes.move_to_end(item)
        if len(self._homes) > _HOMES:
            self._homes.popitem(last=False)

    def came_up(self, server: PooledServer) -> None:
        """Record that a server answered."""
        self.answered, server.state, server.why = True, "up", ""
        for each in self.servers:
            each.desk.answered = max(1, each.desk.answered)  # keeps the engine as a whole from giving up
            each.desk.gave_up = None
        if (probe := self._probes.pop(server, None)) is not None:
            probe.cancel()

    def went_down(self, server: PooledServer, state: str, why: str) -> None:
        """Stop sending to a server, move its queue to others, and check its health until it is back."""
        if server.state in ("left", "wrong") or not (self.others(server) or state == "wrong"):
            return
        if state == "wrong" or server.state == "up":
            self.notes[f"{server.place.url}: {'refused' if state == 'wrong' else 'down for a while'}: {why}"] += 1
        server.state, server.why = state, why
        self._hand_on(server)
        if state == "down" and server not in self._probes:
            self._probes[server] = asyncio.get_running_loop().create_task(self._probe(server))

    def _hand_on(self, server: PooledServer) -> None:
        if server in self.live:
            return
        waiting, server.lane.queue = server.lane.queue, deque()
        for job in waiting:
            self.place(job).queue.append(job)
        if self.thread is not None and self.thread.loop is not None:
            self.thread.loop.call_soon(self.thread.staff_all)

    async def _probe(self, server: PooledServer) -> None:
        """Health checks of a server that is down, with increasing delays; then start with one request at a time."""
        while server.state == "down":
            await asyncio.sleep(min(_LONGEST, _REPROBE * 2 ** min(server.probes, 9)) * self._jitter.uniform(0.8, 1.2))
            server.probes += 1
            there, wrong = await server.desk.look()
            if server.state != "down":
                break
            if wrong:
                self._probes.pop(server, None)
                self.went_down(server, "wrong", wrong)
                return
            if there:
                server.state, server.row = "up", _ROW - 1
                server.lane.limit = Limit(self._most)
                server.lane.limit.value = 1
                if self.thread is not None:
                    self.thread.staff_all()
                break
        self._probes.pop(server, None)

    async def _follow(self) -> None:
        """Read a list that may change at intervals; if it cannot be read, the servers stay the same."""
        while self.listed.changes:
            await asyncio.sleep(_REREAD)
            try:
                await self._take(await self.listed.read())
            except UserError as error:
                self.notes[f"the list of servers could not be reread: {error}"] += 1

    async def _take(self, places: Sequence[Location]) -> None:
        """Add and remove servers to match the list."""
        known, begun = {each.place: each for each in self.servers}, self._watch is not None
        for place in dict.fromkeys(places):
            if place in known:
                continue
            server = PooledServer(place, self._make(place), self, self._most)
            server.desk.transport.open()
            if begun:
                _, wrong = await server.desk.look()
                server.desk.answered = int(self.answered)
                if wrong:
                    server.state = "wrong"
                    self.notes[f"{place.url}: refused: {wrong}"] += 1
            self.servers.append(server)
        listed = set(places)
        gone = [each for each in self.servers if each.place not in listed]
        if len(gone) < len(self.servers):
            self.servers = [each for each in self.servers if each.place in listed]
            for server in gone:
                server.state = "left"
                self._gone.append(server)
                self._hand_on(server)
        self.lanes = [each.lane for each in self.servers]
        if begun and self.thread is not None:
            self.thread.staff_all()

    def status(self) -> str:
        """A message about servers that are down."""
        down = [each.place.url for each in self.servers if each.state != "up"]
        return f"{len(down)} of {len(self.servers)} servers down: {', '.join(down[:3])}" if down else ""

    def told(self) -> Mapping[str, int]:
        """Warnings for the run's notes."""
        return dict(self.notes)
