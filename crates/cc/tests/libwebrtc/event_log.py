"""Reads libwebrtc's event log (version 2: protocol buffers with columns as differences) and prints
what its congestion control heard and said, a line each, in the order of time:

    MS A 0|1                            the sender is limited by its application from now on
    MS P ID BIT/S PACKETS BYTES         a probe, with its least packets and bytes
    MS S NUMBER BYTES                   a packet left, by its transport-wide number
    MS F NUMBER:US|- ...                feedback: packets and their arrivals by the receiver's clock
    MS D BIT/S 1|2|3                    the delay-based rate; normal, underusing, overusing
    MS L BIT/S SHARE PACKETS            the loss-based rate, the share lost in 1/256
    MS R ID BIT/S                       what a probe found

Usage: event_log.py FILE > LOG
"""

import struct
import sys
from collections.abc import Iterator

Event = tuple[int, int, str]


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, by number."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value: int | bytes
        match key & 7:
            case 0:
                value, at = varint(data, at)
            case 1:
                value, at = int.from_bytes(data[at : at + 8], "little"), at + 8
            case 2:
                size, at = varint(data, at)
                value, at = data[at : at + size], at + size
            case 5:
                value, at = int.from_bytes(data[at : at + 4], "little"), at + 4
            case kind:
                raise ValueError(f"field {key >> 3} is of kind {kind}")
        yield key >> 3, value


class Message:
    """A message whose fields occur once."""

    def __init__(self, data: bytes) -> None:
        self.all = dict(fields(data))

    def number(self, field: int) -> int:
        value = self.all.get(field, 0)
        assert isinstance(value, int)
        return value

    def text(self, field: int) -> bytes:
        value = self.all.get(field, b"")
        assert isinstance(value, bytes)
        return value

    def column(self, field: int, more: int) -> list[int]:
        """The first value of a column and so many more, which are differences in field 100 later."""
        first = self.number(field)
        return [first, *differences(self.text(field + 100), first, more)]


class Bits:
    def __init__(self, data: bytes) -> None:
        self.value = int.from_bytes(data, "big")
        self.left = len(data) * 8

    def take(self, count: int) -> int:
        self.left -= count
        assert self.left >= 0, "the column is too short"
        return (self.value >> self.left) & ((1 << count) - 1)


def differences(data: bytes, first: int, count: int) -> list[int]:
    """Values of a column after its first: no data means that all are equal."""
    if not data:
        return [first] * count
    bits = Bits(data)
    kind, width = bits.take(2), bits.take(6) + 1
    signed, wrap = False, 64
    if kind == 1:
        signed = bits.take(1) == 1
        assert bits.take(1) == 0, "columns with gaps are not of use here"
        wrap = bits.take(6) + 1
    values = []
    for _ in range(count):
        step = bits.take(width)
        if signed and step >> (width - 1):
            step -= 1 << width
        first = (first + step) & ((1 << wrap) - 1)
        values.append(first)
    return values


def blobs(data: bytes, count: int) -> list[bytes]:
    """So many pieces: their sizes first, then all of them."""
    sizes, at, pieces = [], 0, []
    for _ in range(count):
        size, at = varint(data, at)
        sizes.append(size)
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return pieces


def arrivals(packet: bytes) -> Iterator[tuple[int, int | None]]:
    """Packets of a feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1) with
    their arrivals in microseconds."""
    base, count = struct.unpack(">HH", packet[12:16])
    time = int.from_bytes(packet[16:19], "big", signed=True) * 64_000
    at, symbols = 20, list[int]()
    while len(symbols) < count:
        (chunk,) = struct.unpack(">H", packet[at : at + 2])
        at += 2
        if chunk >> 15 == 0:
            symbols += [(chunk >> 13) & 3] * (chunk & 0x1FFF)
        elif chunk >> 14 & 1:
            symbols += [(chunk >> shift) & 3 for shift in range(12, -1, -2)]
        else:
            symbols += [(chunk >> shift) & 1 for shift in range(13, -1, -1)]
    for number, symbol in enumerate(symbols[:count], base):
        if symbol == 0:
            yield number & 0xFFFF, None
            continue
        size = symbol
        time += 250 * int.from_bytes(packet[at : at + size], "big", signed=size == 2)
        at += size
        yield number & 0xFFFF, time


def feedbacks(raw: bytes) -> Iterator[bytes]:
    """The transport-wide feedback packets of a compound RTCP packet."""
    at = 0
    while at + 4 <= len(raw):
        size = (int.from_bytes(raw[at + 2 : at + 4], "big") + 1) * 4
        if raw[at + 1] == 205 and raw[at] & 31 == 15:
            yield raw[at : at + size]
        at += size


def events(data: bytes) -> Iterator[Event]:
    """What happened: the time, the order within a time, and the line."""
    for field, value in fields(data):
        if not isinstance(value, bytes):
            continue
        message = Message(value)
        match field:
            case 3:  # packets that left
                more = message.number(11)
                sizes = zip(*(message.column(part, more) for part in (8, 9, 10)), strict=True)
                columns = message.column(1, more), message.column(15, more), sizes
                for time, number, parts in zip(*columns, strict=True):
                    yield time, 1, f"S {number} {sum(parts)}"
            case 4:  # RTCP packets that came
                more = message.number(3)
                raw = [message.text(2), *blobs(message.text(102), more)]
                for time, packet in zip(message.column(1, more), raw, strict=True):
                    for feedback in feedbacks(packet):
                        told = (f"{n}:{'-' if t is None else t}" for n, t in arrivals(feedback))
                        yield time, 2, "F " + " ".join(told)
            case 18:
                columns = [message.column(part, message.number(5)) for part in (1, 2, 3, 4)]
                for time, *row in zip(*columns, strict=True):
                    yield time, 4, "L " + " ".join(map(str, row))
            case 19:
                columns = [message.column(part, message.number(4)) for part in (1, 2, 3)]
                for time, *row in zip(*columns, strict=True):
                    yield time, 3, "D " + " ".join(map(str, row))
            case 21:
                row = [message.number(part) for part in (2, 3, 4, 5)]
                yield message.number(1), 5, "P " + " ".join(map(str, row))
            case 22:
                yield message.number(1), 4, f"R {message.number(2)} {message.number(3)}"
            case 24:
                yield message.number(1), 5, f"A {message.number(2)}"


def main() -> None:
    with open(sys.argv[1], "rb") as file:
        all_events = sorted(events(file.read()), key=lambda event: event[:2])
    first = all_events[0][0]
    for time, _, line in all_events:
        print(time - first, line)


if __name__ == "__main__":
    main()
