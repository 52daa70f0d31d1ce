"""A client of the customer API in one file: Python 3.11 and newer, standard library only.

    from virtual_servers import Client
    api = Client("https://my.example.com", key=os.environ["KEY"])
    server = api.create_server(plan="kvm-1", image="debian-13", name="web-1")
    api.wait_for_server(server["id"], "running")
    for one in api.list_servers(status="running"):
        print(one["name"])

Answers are dictionaries, described as `TypedDict`. Refusals are raised as `ApiError` and its subclasses. Calls are repeated
where that can't do anything twice; creates get an idempotency key. A field that is left out is not sent; `None` is null.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import http.client
import json
import random
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Generic, Literal, NotRequired, TypedDict, TypeVar, cast, overload

T = TypeVar("T")


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()
"""A field that is not sent."""


class ApiError(Exception):
    """The API refused the call."""

    def __init__(self, status: int, error: Mapping[str, Any], headers: Mapping[str, str]):
        super().__init__(
            f"{error.get('message')} ({error.get('reason') or error.get('code')}, {error.get('request_id')})"
        )
        self.status = status
        self.code: str = error["code"]
        self.reason: str | None = error.get("reason")
        self.request_id: str | None = error.get("request_id")
        self.retryable: bool = error.get("retryable") is True
        self.details: Mapping[str, Any] = error.get("details") or {}
        self.fields: list[Mapping[str, Any]] = error.get("fields") or []
        self.error = error
        self.headers = headers
        after = headers.get("retry-after", "")
        self.retry_after: int | None = int(after) if after.isascii() and after.isdigit() else None


class BadRequestError(ApiError):
    pass


class UnauthorizedError(ApiError):
    """The key is missing or not valid."""


class PaymentRequiredError(ApiError):
    pass


class ForbiddenError(ApiError):
    pass


class NotFoundError(ApiError):
    pass


class ConflictError(ApiError):
    pass


class PreconditionFailedError(ApiError):
    """The resource was changed since it was read with the `if_match` of the call."""


class ValidationError(ApiError):
    pass


class RateLimitedError(ApiError):
    pass


class UnavailableError(ApiError):
    pass


class NoAnswerError(Exception):
    """No usable answer came. What was asked for may have happened."""


class WaitError(Exception):
    """What was waited for did not happen."""


class WebhookVerificationError(Exception):
    """The delivery is not from the API, or too old."""


_ERRORS: dict[str, type[ApiError]] = {
    "bad_request": BadRequestError,
    "unauthorized": UnauthorizedError,
    "payment_required": PaymentRequiredError,
    "forbidden": ForbiddenError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "precondition_failed": PreconditionFailedError,
    "validation_failed": ValidationError,
    "rate_limited": RateLimitedError,
    "unavailable": UnavailableError,
}


class Answer:
    """What came beside a body: `client.last_answer`."""

    def __init__(self, status: int, headers: Mapping[str, str]):
        self.status = status
        self.headers = headers

    @property
    def request_id(self) -> str | None:
        return self.headers.get("x-request-id")

    @property
    def etag(self) -> str | None:
        return self.headers.get("etag")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would send the key to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Listing(Generic[T]):
    """A list: iterated it is every item of all pages; `page()` is one page with its `pagination`."""

    def __init__(self, client: BaseClient, items: str, path: str, query: dict[str, Any], tenant: int | str | None):
        self._client, self._items, self._path, self._query, self._tenant = client, items, path, query, tenant

    def page(self, cursor: str | None = None) -> dict[str, Any]:
        query = self._query if cursor is None else {**self._query, "cursor": cursor}
        return cast("dict[str, Any]", self._client._call("GET", self._path, query=query, tenant=self._tenant))

    def pages(self) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            page = self.page(cursor)
            yield page
            cursor = page["pagination"]["next_cursor"]
            if cursor is None:
                return

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page[self._items]


class BaseClient:
    """Makes calls: the key's header, repetitions, time limits."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        tenant: int | str | None = None,
        retries: int = 4,
        timeout: float = 60.0,
        deadline: float = 120.0,
        context: ssl.SSLContext | None = None,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        now: Callable[[], float] = time.monotonic,
    ):
        """`timeout` bounds one attempt, `deadline` a call with all its attempts and pauses, in seconds."""
        if not key:
            raise ValueError("an API key is needed")
        self._url = url.rstrip("/")
        self._key = key
        self._tenant = tenant
        self._retries = retries
        self._timeout = timeout
        self._deadline = deadline
        self._sleep = sleep
        self._jitter = jitter
        self._now = now
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)
        self.last_answer: Answer | None = None

    def __repr__(self) -> str:
        return f"Client({self._url!r})"

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        tenant: int | str | None = None,
        idempotency_key: str | None = None,
        takes_idempotency_key: bool = False,
        if_match: str | None = None,
        wait: int | None = None,
        is_idempotent: bool = False,
        answers_nothing: bool = False,
    ) -> Any:
        headers = {"authorization": f"Bearer {self._key}", "accept": "application/json", "accept-encoding": "gzip"}
        workspace = self._tenant if tenant is None else tenant
        if workspace is not None:
            headers["x-tenant-id"] = str(workspace)
        if if_match is not None:
            headers["if-match"] = if_match
        if wait is not None:
            headers["prefer"] = f"wait={wait}"
        if takes_idempotency_key:
            # One name for all attempts: that makes the second one a repetition and not another order.
            headers["idempotency-key"] = idempotency_key or str(uuid.uuid4())
        pairs = [(name, _text(value)) for name, value in (query or {}).items() if value is not UNSET]
        url = self._url + path + (f"?{urllib.parse.urlencode(pairs)}" if pairs else "")
        data: bytes | None = None
        if body is not None:
            headers["content-type"] = "application/json"
            sent = {name: value for name, value in body.items() if value is not UNSET}
            data = json.dumps(sent, ensure_ascii=False, allow_nan=False).encode()
        may_repeat = method == "GET" or takes_idempotency_key
        # Under `If-Match` the second attempt would look like another's change.
        if not may_repeat and if_match is None:
            may_repeat = method != "POST" or is_idempotent
        deadline = self._now() + self._deadline
        is_answer_lost = False
        attempt = 0
        while True:
            try:
                return self._send(method, url, headers, data, deadline - self._now())
            except (ApiError, NoAnswerError) as error:
                # The attempt whose answer was lost has deleted it.
                if is_answer_lost and answers_nothing and isinstance(error, NotFoundError):
                    return None
                is_answer_lost = is_answer_lost or isinstance(error, NoAnswerError)
                if attempt >= self._retries or not _is_repeated(error, may_repeat):
                    raise
                pause = self._pause(error, attempt)
                if self._now() + pause >= deadline:
                    raise
                self._sleep(pause)
                attempt += 1

    def _pause(self, error: Exception, attempt: int) -> float:
        """At least what the API asks for, else doubling pauses; with jitter."""
        after = error.retry_after if isinstance(error, ApiError) else None
        if after is not None:
            return after * (1 + 0.2 * self._jitter()) + 0.1 * self._jitter()
        return float(min(30.0, 0.5 * 2 ** min(attempt, 10)) * (0.5 + 0.5 * self._jitter()))

    def _send(self, method: str, url: str, headers: dict[str, str], data: bytes | None, left: float) -> Any:
        end = time.monotonic() + max(0.001, min(self._timeout, left))
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            try:
                response = self._opener.open(request, timeout=max(0.001, end - time.monotonic()))
            except urllib.error.HTTPError as answered:
                response = answered
            with response:
                status = int(response.status)
                text = _read(response, end)
        except (OSError, EOFError, http.client.HTTPException, ValueError, zlib.error) as error:
            raise NoAnswerError(f"{method} {url}: no answer ({error})") from error
        answer = Answer(status, {name.lower(): value for name, value in response.headers.items()})
        body = _parse(text)
        if 200 <= status < 300 and (body is not UNSET or status == 204):
            self.last_answer = answer
            return None if body is UNSET else body
        refusal = body.get("error") if isinstance(body, dict) else None
        if isinstance(refusal, dict) and isinstance(refusal.get("code"), str):
            self.last_answer = answer
            raise _ERRORS.get(refusal["code"], ApiError)(status, refusal, answer.headers)
        raise NoAnswerError(f"{method} {url}: {status}, and not by the API")

    def _wait(self, what: str, timeout: float, look: Callable[[int], Any]) -> Any:
        end = self._now() + timeout
        while True:
            found = look(max(0, min(20, int(end - self._now()))))
            if found is not None:
                return found
            left = end - self._now()
            if left <= 0:
                raise WaitError(f"waited in vain for {what}")
            self._sleep(min(2.0, left))


def _is_repeated(error: Exception, may_repeat: bool) -> bool:
    """What the API refused with "later" has not happened; what got no answer may have."""
    if not isinstance(error, ApiError):
        return may_repeat
    if error.status in (409, 429):
        return error.retryable and error.retry_after is not None
    return error.status >= 500 and (error.retryable or may_repeat)


def _read(response: Any, end: float) -> str:
    pieces: list[bytes] = []
    while piece := response.read1(65_536):
        pieces.append(piece)
        if time.monotonic() > end:
            raise TimeoutError("the answer took too long")
    expected = response.headers.get("content-length")
    size = sum(map(len, pieces))
    if expected is not None and size < int(expected):
        raise http.client.IncompleteRead(b"", int(expected) - size)
    body = b"".join(pieces)
    return (gzip.decompress(body) if response.headers.get("content-encoding") == "gzip" else body).decode()


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return UNSET


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _part(value: Any) -> str:
    return urllib.parse.quote(str(value), safe="")


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: str | bytes, now: float | None = None
) -> dict[str, Any]:
    """The event of a delivery whose signature fits and whose time is within five minutes of now.

    `body` is what was received, unparsed. Raises `WebhookVerificationError`.
    """
    given = {name.lower(): value for name, value in headers.items()}
    ident, stamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    signatures = [one[3:] for one in given.get("webhook-signature", "").split(" ") if one.startswith("v1,")]
    if not ident or not (stamp.isascii() and stamp.isdigit()) or not signatures:
        raise WebhookVerificationError("the headers of the webhook are missing")
    if abs((time.time() if now is None else now) - int(stamp)) > 300:
        raise WebhookVerificationError("the webhook is too old, or the clocks differ")
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise WebhookVerificationError("the secret is empty or not base64")
    raw = body.encode() if isinstance(body, str) else body
    wanted = base64.b64encode(hmac.new(key, f"{ident}.{stamp}.".encode() + raw, hashlib.sha256).digest())
    if not any(hmac.compare_digest(wanted, one.encode()) for one in signatures):
        raise WebhookVerificationError("no signature fits")
    return cast("dict[str, Any]", json.loads(raw))
