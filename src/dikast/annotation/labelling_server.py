"""The labelling server: a link for each rater, one for the owner; a label is on disk before the next page is sent."""

import asyncio
import io
import math
import mimetypes
import ssl
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from aiohttp import web

from dikast.annotation.label_store import SKIPPED, Due, LabelStore, hashed
from dikast.annotation.labelling_page import clips_of, contents, policy, render_done, render_owner, render_question
from dikast.annotation.labelling_questions import MARKS, Kind, ToLabel
from dikast.annotation.marks import boxes_from, spans_from
from dikast.annotation.own_pages import form_of, guard, html, serve_pages
from dikast.annotation.precision import left_to_label, progress, stop_rule
from dikast.audit.estimate import Estimate
from dikast.core.media import load_image, resolved, sample_video
from dikast.core.part import Image, images_of, text_of

_SIDE = 2000  # pixels of a picture's longer side
_PER_SECOND = 30  # requests of one rater, on average over ten seconds
_TURNED = {"a": "b", "b": "a"}
_LONGEST = 500  # characters of a reason
_TWICE = (
    "Your answer was not saved: this question already had another one from your link, in another tab or browser. The"
    " first is kept; undo takes back the last label."
)


class LabelServer:
    """Questions as pages. Labels that arrive while others are written to disk are written together after them."""

    def __init__(
        self, store: LabelStore, questions: Mapping[str, ToLabel], owner: str, *,
        host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None, aim: float = 0.03, name: str = "",
        judged: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        self.store, self.questions, self.aim, self.name, self.judged = store, questions, aim, name, judged
        self.host, self.port, self._tls = host, port, tls
        self._owner, self._raters = hashed(owner), store.raters
        self._of = {rater: each.due for rater, each in zip(self._raters.values(), store.counts().values(), strict=True)}
        self._tokens: dict[int, tuple[float, float]] = {}
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[bool]]] = []
        self._writer: asyncio.Task[None] | None = None
        self.stopping = asyncio.Event()

    async def run(self, ready: Callable[[int], None] = lambda port: None) -> None:
        """Serve until SIGTERM or SIGINT. UserError where the address is taken."""
        application = web.Application(client_max_size=256 * 1024, middlewares=[guard(policy())])
        application.add_routes([
            web.get("/r/{token}", self._next), web.post("/r/{token}/label", self._label),
            web.post("/r/{token}/undo", self._undo), web.get("/r/{token}/picture/{task}/{number}", self._picture),
            web.get("/r/{token}/clip/{task}/{number}", self._clip),
            web.get("/o/{token}", self._progress),
        ])  # fmt: skip
        await serve_pages(application, self.host, self.port, self.stopping, ready, tls=self._tls)

    async def _next(self, request: web.Request) -> web.StreamResponse:
        rater, base = self._who(request), _base(request)
        due, last = self.store.due(rater), self.store.last(rater)
        if due is None:
            return html(render_done(base, can_undo=last, said=_TWICE if "twice" in request.query else ""))
        said = self._taught(request, rater) or (_TWICE if "twice" in request.query else "")
        question = self.questions[due.question]
        return html(render_question(question, due, self._of[rater], base, can_undo=last, said=said))

    def _taught(self, request: web.Request, rater: int) -> str:
        """Feedback after a practice question: its known label."""
        asked = request.query.get("after", "")
        done = self.store.task(rater, int(asked)) if asked.isdecimal() and len(asked) < 12 else None
        if done is None or done.kind != "training":
            return ""
        known = _as_shown(self.questions[done.question].known, done)
        told = {"a": "left is better", "b": "right is better", "tie": "about equal"}.get(known, known)
        return f"For practice: the answer to the last question was {told}."

    async def _label(self, request: web.Request) -> web.StreamResponse:
        rater, given = self._who(request), await form_of(request)
        task = self._task(rater, given.get("task"))
        question = self.questions[task.question]
        value, reason = given.get("value"), given.get("reason", "")
        if question.kind in MARKS and value != SKIPPED:
            value = _marks(question, given)
        if not isinstance(value, str) or not isinstance(reason, str) or len(reason) > _LONGEST:
            raise web.HTTPBadRequest(text="a label has a value, and a reason of at most 500 characters")
        if value == SKIPPED and not reason.strip():
            raise web.HTTPBadRequest(text="say why you skip")
        if value != SKIPPED and question.kind not in MARKS and value not in question.labels:
            raise web.HTTPBadRequest(text="this is not a label of the question")
        answer = _as_shown(value, task)
        label = self.store.label(task.id, answer, reason if value == SKIPPED else "")
        after = f"?after={task.id}" if task.kind == "training" else ""
        if not await self._written(label) and self.store.kept(task.id) != answer:
            after = "?twice"
        raise web.HTTPSeeOther(_base(request) + after)

    async def _undo(self, request: web.Request) -> web.StreamResponse:
        rater, given = self._who(request), await form_of(request)
        await self._written(self.store.taking_back(rater, self._task(rater, given.get("task")).id))
        raise web.HTTPSeeOther(_base(request))

    async def _written(self, change: Callable[[], bool]) -> bool:
        """Make a change of the database, and return when it is on disk."""
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return await done

    async def _write(self) -> None:
        """Write what waits in one transaction, and then what has come since: a disk takes milliseconds for each."""
        while self._waiting:
            (changes, waiting), self._waiting = zip(*self._waiting, strict=True), []
            try:
                made = await asyncio.to_thread(self.store.write, changes)
            except Exception as error:
                for each in waiting:
                    each.done() or each.set_exception(error)
                continue
            for each, result in zip(waiting, made, strict=True):
                each.done() or each.set_result(result)  # done: the rater's request has ended

    def _task(self, rater: int, given: object) -> Due:
        found = (
            self.store.task(rater, int(given))
            if isinstance(given, str) and given.isdecimal() and len(given) < 12
            else None
        )
        if found is None:
            raise web.HTTPBadRequest(text="no such question of yours")
        return found

    async def _picture(self, request: web.Request) -> web.StreamResponse:
        rater = self._who(request)
        task, number = self._task(rater, request.match_info["task"]), request.match_info["number"]
        shown = _pictures(self.questions[task.question])
        if not number.isdecimal() or len(number) > 9 or int(number) >= len(shown):
            raise web.HTTPNotFound
        data = await asyncio.to_thread(_png, shown[int(number)])
        return web.Response(body=data, content_type="image/png", headers={"Cache-Control": "private, max-age=3600"})

    async def _clip(self, request: web.Request) -> web.StreamResponse:
        rater = self._who(request)
        task, number = self._task(rater, request.match_info["task"]), request.match_info["number"]
        played = [clip for _, content in contents(self.questions[task.question]) for clip in clips_of(content)]
        if not number.isdecimal() or len(number) > 9 or int(number) >= len(played):
            raise web.HTTPNotFound
        clip = played[int(number)]
        await asyncio.to_thread(sample_video, clip, 1)  # DataError where another file has taken its place meanwhile
        path = resolved(Image(clip.source, clip.root))
        kind = mimetypes.guess_type(path)[0] or ""
        told = {"Cache-Control": "private", "Content-Type": kind if kind.startswith("video/") else "video/mp4"}
        return web.FileResponse(path, headers=told)

    async def _progress(self, request: web.Request) -> web.StreamResponse:
        if hashed(request.match_info["token"]) != self._owner:
            raise web.HTTPNotFound
        return html(await asyncio.to_thread(self._figures))

    def _figures(self) -> str:
        """The owner's page, made beside the labels that arrive meanwhile: of many questions it takes seconds."""
        with self.store.one_moment() as now:
            labels, chances, due, counts = now.labels(), now.chances(), now.open_questions(), now.counts()
        found = progress(self.questions, labels, self.judged, chances)
        left = left_to_label(self.questions, labels, due, self.judged)
        rule = stop_rule(found["mean (0 to 1)"], self.aim, left)
        figures = [(name, _figure_text(each)) for name, each in found.items()]
        kind: Kind = next((each.kind for each in self.questions.values()), "absolute")
        return render_owner(counts, figures, rule, self.name, kind)

    def _who(self, request: web.Request) -> int:
        """The rater of a link, within the rate limit; 404 for an unknown link, without further details."""
        rater = self._raters.get(hashed(request.match_info["token"]))
        if rater is None:
            raise web.HTTPNotFound
        now = time.monotonic()
        left, at = self._tokens.get(rater, (10.0 * _PER_SECOND, now))
        left = min(10.0 * _PER_SECOND, left + (now - at) * _PER_SECOND) - 1
        self._tokens[rater] = (max(left, 0.0), now)
        if left < 0:
            raise web.HTTPTooManyRequests(headers={"Retry-After": "1"})
        return rater


def _marks(question: ToLabel, given: Any) -> str:
    """The marks of a form as a label; an empty list only where the button for nothing was pressed."""
    if given.get("value") == "nothing":
        return "[]"
    try:
        if question.kind == "spans":
            text = text_of(question.item.responses[question.responses[0]])
            value = spans_from([str(each) for each in given.getall("word", [])], text)
        else:
            value = boxes_from(str(given.get("boxes", "")), len(_pictures(question)))
    except ValueError as error:
        raise web.HTTPBadRequest(text=str(error)) from None
    if value == "[]":
        raise web.HTTPBadRequest(text="mark something, or press the button that says there is nothing to mark")
    return value


def _figure_text(figure: Estimate) -> str:
    why = f": {figure.note}" if figure.note and math.isnan(figure.low) else ""
    return f"{figure:.3f} (n = {figure.n:,}){why}" if figure.n else f"not known yet{why}"


def _pictures(question: ToLabel) -> list[Image]:
    return [image for _, content in contents(question) for image in images_of(content)]


def _base(request: web.Request) -> str:
    return f"/r/{request.match_info['token']}"


def _as_shown(value: str, due: Due) -> str:
    """A choice converted between the order shown and the item's order, if the task is swapped."""
    return _TURNED.get(value, value) if due.swapped else value


@lru_cache(maxsize=64)
def _png(image: Image) -> bytes:
    drawn = load_image(image).picture.copy()
    drawn.thumbnail((_SIDE, _SIDE))
    buffer = io.BytesIO()
    drawn.save(buffer, "PNG")
    return buffer.getvalue()
