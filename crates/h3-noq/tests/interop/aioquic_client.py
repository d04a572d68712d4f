"""Fetch URLs of one server at once with aioquic; print each one's path, ALPN and body's SHA-256."""

import asyncio
import hashlib
import ssl
import sys
from urllib.parse import urlsplit

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, QuicEvent


class Client(QuicConnectionProtocol):
    """A connection that hashes the bodies it brings."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = None
        self.alpn = None
        self.bodies = {}
        self.ends = {}

    def quic_event_received(self, event: QuicEvent) -> None:
        """Take in what has happened on the connection."""
        if isinstance(event, ProtocolNegotiated):
            self.alpn = event.alpn_protocol
            self.http = H3Connection(self._quic)
        if isinstance(event, ConnectionTerminated):
            for end in self.ends.values():
                if not end.done():
                    end.set_exception(ConnectionError(event.reason_phrase))
        if self.http is None:
            return
        for http_event in self.http.handle_event(event):
            end = self.ends.get(http_event.stream_id)
            if isinstance(http_event, HeadersReceived):
                status = dict(http_event.headers)[b":status"]
                if status != b"200":
                    end.set_exception(ValueError(f"status {status.decode()}"))
            if isinstance(http_event, DataReceived):
                self.bodies[http_event.stream_id].update(http_event.data)
            if isinstance(http_event, HeadersReceived | DataReceived) and http_event.stream_ended:
                end.set_result(None)

    async def fetch(self, host: str, path: str) -> str:
        """Ask for a path, and return the hash of its body."""
        stream = self._quic.get_next_available_stream_id()
        self.bodies[stream] = hashlib.sha256()
        self.ends[stream] = asyncio.get_running_loop().create_future()
        head = {":method": "GET", ":scheme": "https", ":authority": host, ":path": path}
        headers = [(name.encode(), value.encode()) for name, value in head.items()]
        self.http.send_headers(stream, headers, end_stream=True)
        self.transmit()
        await self.ends[stream]
        return self.bodies[stream].hexdigest()


async def main(urls: list[str]) -> None:
    """Fetch all, and print what came."""
    first = urlsplit(urls[0])
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
    paths = [urlsplit(url).path for url in urls]
    async with connect(
        first.hostname, first.port, configuration=configuration, create_protocol=Client
    ) as client:
        hashes = await asyncio.gather(*(client.fetch(first.netloc, path) for path in paths))
        for path, digest in zip(paths, hashes, strict=True):
            print(path, client.alpn, digest)


asyncio.run(main(sys.argv[1:]))
