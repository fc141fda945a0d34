"""What has changed on the display, for live views: pictures of those tiles that differ from an earlier moment.

Nothing is compared while nobody waits for a change, and only what has been drawn on since.
"""

import random
import struct
import threading
import time

import Xlib.display
import Xlib.error
import Xlib.ext.damage

import screen

# See view-update.ts of the contract, and viewTilePixels among its limits.
TILE = 128
MAGIC, VERSION, CURRENT, JPEG = b'svcv', 1, 1, 1
HEADER, REGION = struct.Struct('>4sBBHIHH'), struct.Struct('>HHHHB3xI')
# Between two comparisons, and between two looks at the pointer while nothing is drawn.
SECONDS_BETWEEN, SECONDS_STILL = 0.2, 0.5
# Between two comparisons of the whole display, for what the X server does not report, such as another pointer.
SECONDS_WHOLE = 5
# Without a comparison, until the X server is asked for no more reports.
SECONDS_KEPT = 10
LOCK_SECONDS = 20
# Rows above and below its hot spot that a pointer may cover.
POINTER = 64


class Changes:
    """Compares the display with what it was at the last comparison, in strips of rows as high as a tile."""

    def __init__(self, framebuffer):
        self.framebuffer = framebuffer
        self.drawing = Drawing()
        self.lock = threading.Lock()
        # At random, so that a number from before a restart of this program is unknown.
        self.first = self.number = random.SystemRandom().randrange(1, 1 << 31)
        self.shape = None
        self.strips = []
        # For each tile, by its position, the number of the comparison that found it changed.
        self.changed = {}
        self.whole_at = self.rested_at = 0

    def update(self, since, quality, deadline, wait):
        """What has changed since the update with this number, as bytes; all of the display if that number is unknown.

        Waits for a change. Empty after the deadline, a time of the monotonic clock, and once the update is no longer wanted:
        `wait` tells, which is given the seconds to wait, and files to wait for as well.
        """
        while True:
            # Pictures take at most half of the time, however much changes.
            rest = self.rested_at - time.monotonic()
            if rest > 0 and not wait(rest):
                return b''
            began = time.monotonic()
            tiles, number, (width, height), strips = self.tiles(since)
            if tiles:
                regions = [region for y in sorted({y for _, y in tiles})
                           for region in pictures(strips[y // TILE], y, sorted(x for x, top in tiles if top == y), width, quality)]
                ended = time.monotonic()
                self.rested_at = ended + ended - began
                return HEADER.pack(MAGIC, VERSION, CURRENT, len(regions), number, width, height) + b''.join(regions)
            if time.monotonic() >= deadline or not wait(SECONDS_BETWEEN):
                return b''
            if not wait(SECONDS_STILL - SECONDS_BETWEEN, *self.drawing.files()):
                return b''

    def tiles(self, since):
        """The tiles that have changed since the update with this number; and the number, the size and the strips of the display now."""
        if not self.lock.acquire(timeout=LOCK_SECONDS):
            raise OSError('the X server does not answer')
        try:
            self.compare()
            known = since if self.first <= since <= self.number else 0
            tiles = [tile for tile, number in self.changed.items() if number > known]
            return tiles, self.number, self.shape, self.strips
        finally:
            self.lock.release()

    def compare(self):
        now = time.monotonic()
        rows = self.drawing.rows()
        if rows is None or self.shape is None or now - self.whole_at >= SECONDS_WHOLE:
            rows, self.whole_at = [(0, 1 << 16)], now
        elif not rows:
            return
        width, height, strips = screen.strips(self.framebuffer, TILE, lambda top, bottom: any(
            first < bottom and top < last for first, last in rows))
        if self.shape != (width, height):
            self.shape, self.strips, self.changed = (width, height), [b''] * len(strips), {}
        # Another list, because pictures of the one before may be being made.
        strips = [before if after is None else after for before, after in zip(self.strips, strips)]
        tiles = [(x, index * TILE) for index, strip in enumerate(strips) if strip != self.strips[index]
                 for x in different(self.strips[index], strip, width)]
        if tiles:
            self.number += 1
            self.changed.update(dict.fromkeys(tiles, self.number))
            self.strips = strips


class Drawing:
    """What the X server reports as drawn on, so that only that has to be compared."""

    def __init__(self):
        self.lock = threading.Lock()
        self.display = None
        self.timer = None
        self.used_at = 0

    def rows(self):
        """First rows, and the rows after the last ones, of all that may have changed since the last call; None: anything."""
        with self.lock:
            self.used_at = time.monotonic()
            if self.timer is None:
                self.end_after(SECONDS_KEPT)
            try:
                if self.display is None:
                    self.open()
                    return None
                return list(self.read())
            except (Xlib.error.ConnectionClosedError, Xlib.error.DisplayError, Xlib.error.XError, OSError):
                self.close()
                return None

    def files(self):
        """What can be read from once something is drawn."""
        with self.lock:
            return [] if self.display is None else [self.display]

    def open(self):
        self.display = Xlib.display.Display()
        self.display.damage_query_version()
        self.root = self.display.screen().root
        self.damage = self.root.damage_create(Xlib.ext.damage.DamageReportBoundingBox)
        self.pointers = [self.position()] * 3

    def read(self):
        # A round trip, so that whatever was drawn before has been reported.
        self.pointers = [*self.pointers[1:], self.position()]
        # The server draws the pointer a little after it has moved, so that its rows are compared once more.
        if len(set(self.pointers)) > 1:
            for _, y in self.pointers:
                yield y - POINTER, y + POINTER
        reports = [self.display.next_event() for _ in range(self.display.pending_events())]
        if reports:
            # Only now: what is drawn from here on is reported again, although it may lie where something was drawn before.
            self.display.damage_subtract(self.damage, 0, 0)
            self.display.sync()
        for report in reports:
            if report.type == self.display.extension_event.DamageNotify:
                yield report.area.y, report.area.y + report.area.height

    def position(self):
        answer = self.root.query_pointer()
        return answer.root_x, answer.root_y

    def end_after(self, seconds):
        self.timer = threading.Timer(seconds, self.end)
        self.timer.daemon = True
        self.timer.start()

    def end(self):
        """Ends the reports, for which the X server works, once they are not used any more."""
        with self.lock:
            left = self.used_at + SECONDS_KEPT - time.monotonic()
            if left > 0:
                self.end_after(left)
                return
            self.timer = None
            self.close()

    def close(self):
        display, self.display = self.display, None
        if display is not None:
            try:
                display.close()
            except (Xlib.error.ConnectionClosedError, OSError):
                # It has been lost already.
                return


def different(before, after, width):
    """The left edges of the tiles in which two strips differ."""
    edges = range(0, width, TILE)
    if len(before) != len(after):
        return edges
    found = set()
    row = width * 4
    for at in range(0, len(after), row):
        if before[at:at + row] != after[at:at + row]:
            found.update(x for x in edges if x not in found
                         and before[at + x * 4:at + min(x + TILE, width) * 4] != after[at + x * 4:at + min(x + TILE, width) * 4])
        if len(found) == len(edges):
            break
    return sorted(found)


def pictures(strip, y, edges, width, quality):
    """The regions of an update for the tiles of a strip, each with its header."""
    image = screen.image_of(width, strip)
    for x in edges:
        tile = image.crop((x, 0, min(x + TILE, width), image.height))
        content = screen.encoded(tile, 'JPEG', quality=quality)
        yield REGION.pack(x, y, tile.width, tile.height, JPEG, len(content)) + content
