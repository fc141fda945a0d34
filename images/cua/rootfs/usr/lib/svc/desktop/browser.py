"""Elements of web pages, from Chromium's DevTools."""

import json
import os
import time
import urllib.request

import websocket

from geometry import centre, clip, likeness

MAX_PAGES = 8
MAX_MESSAGE = 4 << 20
WORLD = 'svc-elements'
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'page.js'), encoding='utf-8') as source:
    # The function without the semicolon that ends its statement.
    SCRIPT = source.read().rstrip().removesuffix(';')


class Page:
    """A connection to one page, which the ids of its elements depend on."""

    def __init__(self, address, seconds):
        self.socket = websocket.create_connection(address, timeout=seconds, suppress_origin=True)
        self.number = 0

    def call(self, deadline, method, **parameters):
        self.number += 1
        self.socket.settimeout(left(deadline))
        self.socket.send(json.dumps({'id': self.number, 'method': method, 'params': parameters}))
        while True:
            self.socket.settimeout(left(deadline))
            text = self.socket.recv()
            if len(text) > MAX_MESSAGE:
                raise ValueError('too long an answer')
            answer = json.loads(text)
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise ValueError(answer['error'].get('message', 'refused'))
                return answer['result']

    def elements(self, deadline, limit):
        frame = self.call(deadline, 'Page.getFrameTree')['frameTree']['frame']['id']
        world = self.call(deadline, 'Page.createIsolatedWorld', frameId=frame, worldName=WORLD)
        result = self.call(deadline, 'Runtime.evaluate', expression=f'({SCRIPT})({limit})', returnByValue=True,
                           contextId=world['executionContextId'])
        if 'exceptionDetails' in result:
            raise ValueError(result['exceptionDetails'].get('text', 'failed'))
        return result['result']['value']

    def close(self):
        self.socket.close(timeout=0)


class Browser:
    """The pages of the browser on the display."""

    def __init__(self, port):
        self.port = port
        self.pages = {}

    def targets(self, deadline):
        with urllib.request.urlopen(f'http://127.0.0.1:{self.port}/json/list', timeout=left(deadline)) as answer:
            listed = json.loads(answer.read(MAX_MESSAGE))
        return [target for target in listed if target['type'] == 'page' and 'webSocketDebuggerUrl' in target][:MAX_PAGES]

    def elements(self, bounds, documents, windows, deadline, limit):
        """The elements of the pages that are visible, and whether there are more."""
        targets = self.targets(deadline)
        for gone in set(self.pages) - {target['id'] for target in targets}:
            self.pages.pop(gone).close()
        found, truncated = [], False
        for target in targets:
            answer = self.ask(target, deadline, limit)
            if answer is None:
                truncated = True
            elif answer['visible']:
                truncated = truncated or answer['truncated']
                found.extend(self.place(target['id'], answer, bounds, documents, windows))
        return found, truncated

    def ask(self, target, deadline, limit):
        """None when the page does not answer, for example while it shows a dialogue."""
        try:
            page = self.pages.get(target['id'])
            if page is None:
                page = self.pages[target['id']] = Page(target['webSocketDebuggerUrl'], left(deadline))
            return page.elements(min(deadline, time.monotonic() + 3), limit)
        except (OSError, ValueError, KeyError, websocket.WebSocketException):
            page = self.pages.pop(target['id'], None)
            if page is not None:
                page.close()
            return None

    def place(self, target, answer, bounds, documents, windows):
        """The elements of a page in pixels of the display."""
        frame, scale = tuple(answer['window']), answer['scale']
        view = viewport(frame, answer['inner'], scale, documents)
        window = windows.of(None, frame)
        inside = clip(view, bounds)
        for element in answer['elements']:
            left_, top, width, height = (value * scale for value in element['box'])
            box = tuple(round(value) for value in (view[0] + left_, view[1] + top, width, height))
            shown = None if inside is None else clip(box, inside)
            if shown is None or not windows.shows(window, centre(shown)):
                continue
            placed = {'key': (target, answer['token'], element['id']), 'role': element['role'], 'name': element['name'],
                      'box': shown, 'source': 'page', 'states': element['states']}
            if 'value' in element:
                placed['value'] = element['value']
            yield placed


def viewport(frame, inner, scale, documents):
    """
    Where a page is on the display. The accessibility tree says it exactly. Without it: the bars of a browser are above
    the page, and its border is equal on the other three sides.
    """
    width, height = inner[0] * scale, inner[1] * scale
    border = max(0, (frame[2] - width) / 2)
    guess = (frame[0] + border, frame[1] + frame[3] - border - height, width, height)
    best = max((document.box for document in documents), key=lambda box: likeness(box, guess), default=None)
    return best if best is not None and likeness(best, guess) > 0.6 else tuple(round(value) for value in guess)


def left(deadline):
    """Seconds until the deadline. Raises a TimeoutError after it."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError('no time left')
    return seconds
