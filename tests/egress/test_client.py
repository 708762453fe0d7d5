from __future__ import annotations

import asyncio
import gzip
import ipaddress
import socket

import pytest

from tests.egress.recorder import Recorded, answering, plain, recording
from toolyard.core.errors import AddressRefused, EgressError
from toolyard.egress import AddressPolicy, Egress

LOOPBACK = AddressPolicy(refused=(ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")))


async def test_a_request_goes_out_as_it_was_given_and_nothing_is_added_to_it(egress: Egress) -> None:
    async with recording(answering(201, b'{"id":1}', headers={"X-Answer": "yes"})) as server:
        answer = await egress.request(
            "POST", f"{server.url}/pets", headers={"Content-Type": "application/json"}, body=b'{"name":"Rex"}'
        )
        assert (answer.status, answer.body, answer.truncated) == (201, b'{"id":1}', False)
        assert answer.headers["x-answer"] == "yes"
        assert server.last.body == b'{"name":"Rex"}'
        assert {name.lower() for name, _ in server.last.headers} == {
            "host", "user-agent", "accept", "accept-encoding", "content-type", "content-length",
        }  # fmt: skip


async def test_a_post_without_a_body_has_length_0_and_no_type(egress: Egress) -> None:
    async with recording() as server:
        await egress.request("POST", f"{server.url}/run")
        assert (server.last.header("Content-Length"), server.last.header("Content-Type")) == ("0", None)


async def test_an_encoded_target_reaches_the_wire_byte_for_byte(egress: Egress) -> None:
    async with recording() as server:
        target = "/a/%2e%2e/b%2Fc?x=%2F&y=a%20b&z=;"
        await egress.request("GET", server.url + target, encoded=True)
        assert server.last.target == target


async def test_connections_are_kept_and_cookies_are_not(egress: Egress) -> None:
    async with recording(answering(headers={"Set-Cookie": "a=1; Path=/"})) as server:
        for _ in range(3):
            await egress.request("GET", server.url)
        assert server.connections == 1
        assert server.last.header("Cookie") is None


async def test_a_body_over_the_cap_is_cut_and_says_so(egress: Egress) -> None:
    async with recording(answering(body=b"x" * 5000)) as server:
        answer = await egress.request("GET", server.url, max_bytes=1000)
        assert (answer.body, answer.cut_by) == (b"x" * 1000, "size")


async def test_the_cap_counts_decoded_bytes(egress: Egress) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    async with recording(answering(body=bomb, headers={"Content-Encoding": "gzip"})) as server:
        answer = await egress.request("GET", server.url, max_bytes=100_000)
        assert (len(answer.body), answer.cut_by) == (100_000, "size")


async def test_an_endless_body_stops_at_the_cap(egress: Egress) -> None:
    async def endless(_: Recorded, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"tick\n" * 1000)
            await writer.drain()

    async with recording(endless) as server:
        answer = await egress.request("GET", server.url, max_bytes=20_000)
        assert (len(answer.body), answer.cut_by) == (20_000, "size")


async def _stall_within_body(_: Recorded, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst")
    await writer.drain()
    await asyncio.Event().wait()


async def test_a_body_that_stalls_is_an_error_or_on_request_what_came(egress: Egress) -> None:
    async with recording(_stall_within_body) as server:
        with pytest.raises(EgressError, match=r"did not answer within 0\.2 s") as caught:
            await egress.request("GET", server.url, time_limit=0.2)
        assert caught.value.sent
        answer = await egress.request("GET", server.url, time_limit=0.2, keep_partial=True)
        assert (answer.body, answer.cut_by) == (b"first", "time")


async def test_an_unreachable_host_is_named_and_nothing_was_sent(egress: Egress) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(EgressError, match=rf"No connection to 127\.0\.0\.1:{port}") as caught:
            await egress.request("POST", f"http://ada:hunter2@127.0.0.1:{port}/x?api_key=hunter2", body=b"{}")
    assert not caught.value.sent
    assert "hunter2" not in str(caught.value)


async def test_a_name_that_does_not_resolve_is_an_error_before_sending(egress: Egress) -> None:
    with pytest.raises(EgressError, match=r"nowhere\.invalid cannot be resolved") as caught:
        await egress.request("GET", "http://nowhere.invalid/")
    assert not caught.value.sent


@pytest.mark.parametrize("url", ["ftp://example.com/x", "file:///etc/passwd", "no url", "http://", "http://h:99999/"])
async def test_only_http_addresses_are_used(egress: Egress, url: str) -> None:
    with pytest.raises(EgressError) as caught:
        await egress.request("GET", url)
    assert not caught.value.sent


async def test_a_header_cannot_smuggle_another(egress: Egress) -> None:
    async with recording() as server:
        with pytest.raises(EgressError, match="cannot be sent") as caught:
            await egress.request("POST", server.url, headers={"X-A": "1\r\nX-Evil: hunter2"}, body=b"{}")
        assert (server.requests, caught.value.sent) == ([], False)
    assert "hunter2" not in str(caught.value)


async def test_a_connection_lost_after_sending_says_that_it_was_sent(egress: Egress) -> None:
    async def hang_up(_: Recorded, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with recording(hang_up) as server:
        with pytest.raises(EgressError, match="closed the connection") as caught:
            await egress.request("POST", server.url, body=b"{}")
    assert caught.value.sent


async def test_redirects_of_get_are_followed_and_credentials_stay_behind_at_another_origin(egress: Egress) -> None:
    async with recording() as elsewhere:

        async def redirect(request: Recorded, writer: asyncio.StreamWriter) -> None:
            target = "/there" if request.target == "/here" else f"{elsewhere.url}/final"
            writer.write(plain(302, b"", headers={"Location": target}))

        async with recording(redirect) as server:
            headers = {"Authorization": "Bearer s", "X-Api-Key": "s", "Cookie": "s=1", "Accept": "text/html"}
            answer = await egress.request("GET", f"{server.url}/here", headers=headers)
            assert answer.url == f"{elsewhere.url}/final"
            assert [(r.target, r.header("X-Api-Key")) for r in server.requests] == [("/here", "s"), ("/there", "s")]
            assert elsewhere.last.header("Accept") == "text/html"
            assert [elsewhere.last.header(name) for name in ("Authorization", "X-Api-Key", "Cookie")] == [None] * 3


async def test_a_signed_address_goes_out_as_the_redirect_gave_it(egress: Egress) -> None:
    async def redirect(request: Recorded, writer: asyncio.StreamWriter) -> None:
        target = "/%2e/b?sig=a%2Fb%3D&x=%20"
        writer.write(plain(302, b"", headers={"Location": target}) if request.target == "/" else plain())

    async with recording(redirect) as server:
        await egress.request("GET", server.url)
        assert server.last.target == "/%2e/b?sig=a%2Fb%3D&x=%20"


async def test_a_redirected_post_is_handed_back(egress: Egress) -> None:
    async with recording(answering(302, b"", headers={"Location": "/x"})) as server:
        answer = await egress.request("POST", server.url, body=b"{}")
        assert (answer.status, answer.headers["Location"], len(server.requests)) == (302, "/x", 1)


async def test_a_redirect_loop_ends(egress: Egress) -> None:
    async with recording(answering(302, b"", headers={"Location": "/again"})) as server:
        with pytest.raises(EgressError, match="redirects more than 5 times"):
            await egress.request("GET", server.url)
        assert len(server.requests) == 6


async def test_a_stream_hands_out_chunks_as_they_come(egress: Egress) -> None:
    more = asyncio.Event()

    async def events(_: Recorded, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        await writer.drain()
        await more.wait()
        writer.write(b"data: 2\n\n")
        await writer.drain()
        writer.close()

    async with recording(events) as server, egress.stream("GET", server.url) as answer:
        chunks = answer.chunks
        assert (answer.status, await anext(chunks)) == (200, b"data: 1\n\n")
        more.set()
        assert [chunk async for chunk in chunks] == [b"data: 2\n\n"]


async def test_a_silent_stream_is_an_error(egress: Egress) -> None:
    async with recording(_stall_within_body) as server, egress.stream("GET", server.url, idle_limit=0.1) as answer:
        assert await anext(answer.chunks) == b"first"
        with pytest.raises(EgressError, match="went silent"):
            await anext(answer.chunks)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_policy_is_asked_for_names_and_for_literal_addresses(host: str) -> None:
    guarded = Egress(policy=LOOPBACK)
    async with recording() as server:
        url = server.url.replace("127.0.0.1", host)
        with pytest.raises(AddressRefused, match="is at an address that is not allowed") as caught:
            await guarded.request("GET", url)
        async with guarded.sdk_client() as client:
            with pytest.raises(AddressRefused):
                await client.get(url)
        assert (server.connections, caught.value.sent) == (0, False)
    await guarded.close()


async def test_the_sdk_client_speaks_over_our_sockets(egress: Egress) -> None:
    async with recording(answering(body=b'{"a":1}')) as server, egress.sdk_client(headers={"X-A": "1"}) as client:
        answer = await client.post(f"{server.url}/rpc", json={})
        assert (answer.json(), server.last.header("X-A")) == ({"a": 1}, "1")


async def test_the_sdk_client_raises_the_sdk_s_own_errors(egress: Egress) -> None:
    import httpx2

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with egress.sdk_client() as client:
            with pytest.raises(httpx2.ConnectError):
                await client.get(f"http://127.0.0.1:{taken.getsockname()[1]}/")


async def test_closing_twice_and_before_use_is_fine() -> None:
    client = Egress()
    await client.close()
    async with recording() as server:
        await client.request("GET", server.url)
    await client.close()
    await client.close()
