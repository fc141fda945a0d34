"""Elements of web pages, from Chromium's DevTools: https://chromedevtools.github.io/devtools-protocol/"""

import http.client
import json
import os
import time

import websocket

from failures import Gone, Hidden, Unanswered
from geometry import centre, clip, likeness

MAX_PAGES = 30
MAX_MESSAGE = 4 << 20
# Time for the answer of a page that has left the last question unanswered.
SILENT_SECONDS = 3
# A page does not answer while a dialogue of the browser covers it.
DIALOG_SECONDS = 3
WORLD = 'svc-elements'
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'page.js'), encoding='utf-8') as source:
    SCRIPT = source.read()


class Refused(Exception):
    """The browser's answer to a command is an error."""


# What can go wrong with a connection to the browser.
FAILURES = (OSError, ValueError, KeyError, Refused, Unanswered, http.client.HTTPException, websocket.WebSocketException)


class DevTools:
    """A connection to the browser, which all pages share. It stays open: each new one costs several exchanges."""

    def __init__(self, port, deadline):
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=left(deadline))
        try:
            connection.request('GET', '/json/version')
            address = json.loads(connection.getresponse().read(MAX_MESSAGE))['webSocketDebuggerUrl']
        finally:
            connection.close()
        self.socket = websocket.create_connection(address, timeout=left(deadline), suppress_origin=True)
        self.number = 0
        self.sent = {}
        self.answers = {}
        self.sessions = {}
        # The sessions that have left the last question unanswered.
        self.silent = set()

    def send(self, session, method, **parameters):
        """Sends a command to a page, or to the browser for the session None. Returns its number, for `answer`."""
        self.number += 1
        command = {'id': self.number, 'method': method, 'params': parameters}
        if session is not None:
            command['sessionId'] = session
        self.socket.send(json.dumps(command))
        self.sent[self.number] = time.monotonic()
        return self.number

    def answer(self, session, number, deadline):
        """The answer to a command. Raises Refused, or Unanswered at the deadline."""
        until = min(deadline, self.sent[number] + SILENT_SECONDS) if session in self.silent else deadline
        try:
            while number not in self.answers:
                self.socket.settimeout(left(until))
                self.receive()
        except (TimeoutError, websocket.WebSocketTimeoutException) as error:
            self.silent.add(session)
            raise Unanswered() from error
        finally:
            del self.sent[number]
        answer = self.answers.pop(number)
        if 'error' in answer:
            raise Refused(answer['error'].get('message', 'refused'))
        return answer['result']

    def receive(self):
        text = self.socket.recv()
        if len(text) > MAX_MESSAGE:
            raise ValueError('too long an answer')
        message = json.loads(text)
        self.silent.discard(message.get('sessionId'))
        if message.get('id') in self.sent:
            self.answers[message['id']] = message
        elif message.get('method') == 'Target.detachedFromTarget':
            gone = message['params']['sessionId']
            self.sessions = {target: session for target, session in self.sessions.items() if session != gone}
            self.silent.discard(gone)

    def process(self, deadline):
        """The number of the browser's main process."""
        number = self.send(None, 'SystemInfo.getProcessInfo')
        processes = self.answer(None, number, deadline)['processInfo']
        return next(process['id'] for process in processes if process['type'] == 'browser')

    def targets(self, deadline):
        """The numbers of the open pages."""
        number = self.send(None, 'Target.getTargets', filter=[{'type': 'page'}])
        return [target['targetId'] for target in self.answer(None, number, deadline)['targetInfos']]

    def close(self):
        self.socket.close(timeout=0)


class Page:
    """One page. The methods that begin with `ask` send a command, those with `hear` wait for its answer."""

    def __init__(self, devtools, target):
        self.devtools, self.target = devtools, target
        self.number = None

    @property
    def session(self):
        return self.devtools.sessions.get(self.target)

    def ask_session(self):
        if self.session is None:
            self.number = self.devtools.send(None, 'Target.attachToTarget', targetId=self.target, flatten=True)

    def hear_session(self, deadline):
        if self.session is None:
            answer = self.devtools.answer(None, self.number, deadline)
            self.devtools.sessions[self.target] = answer['sessionId']

    def ask_world(self):
        # The number of a page's main frame is that of its target. The world is created once in each document.
        self.number = self.send('Page.createIsolatedWorld', frameId=self.target, worldName=WORLD)

    def hear_world(self, deadline):
        return self.devtools.answer(self.session, self.number, deadline)['executionContextId']

    def ask_value(self, world, call):
        # An element with this id would be a property too, but not an own one.
        expression = f"Object.hasOwn(globalThis, 'svcElements') ? svcElements.{call} : null"
        self.number = self.send('Runtime.evaluate', expression=expression, returnByValue=True, contextId=world)

    def hear_value(self, world, call, deadline):
        value = self.value(deadline)
        if value is None:
            self.number = self.send('Runtime.evaluate', expression=f'{SCRIPT}svcElements.{call}', returnByValue=True, contextId=world)
            value = self.value(deadline)
        return value

    def value(self, deadline):
        result = self.devtools.answer(self.session, self.number, deadline)
        if 'exceptionDetails' in result:
            raise Refused(result['exceptionDetails'].get('text', 'failed'))
        return result['result'].get('value')

    def send(self, method, **parameters):
        return self.devtools.send(self.session, method, **parameters)


class Browser:
    """The pages of the browser on the display."""

    def __init__(self, port):
        self.port = port
        self.devtools = None
        # The number of its main process, while it is connected.
        self.process = None

    def pages(self, deadline):
        """The pages that are open; none without a browser. Raises Unanswered."""
        for _ in range(2):
            try:
                if self.devtools is None:
                    self.devtools = DevTools(self.port, deadline)
                    self.process = self.devtools.process(deadline)
                return [Page(self.devtools, target) for target in self.devtools.targets(deadline)]
            except ConnectionRefusedError:
                return []
            except FAILURES:
                # The connection may be that to a browser that has ended.
                self.disconnect()
        raise Unanswered()

    def elements(self, pages, bounds, found, windows, deadline, limit):
        """The elements of the pages that are visible, and whether there are more. `found` is from the accessibility tree."""
        if found.has_dialog and not found.documents:
            deadline = min(deadline, time.monotonic() + DIALOG_SECONDS)
        elements, truncated = [], len(pages) > MAX_PAGES
        for page, answer in self.ask(pages[:MAX_PAGES], f'list({limit})', deadline):
            if answer is None:
                truncated = True
            elif answer['visible']:
                truncated = truncated or answer['truncated']
                elements.extend(place(page.target, answer, bounds, found.documents, windows))
        return elements, truncated

    def element(self, target, token, number, bounds, documents, windows, deadline):
        """One element as it is now. Raises one of `failures`."""
        page = next((page for page in self.pages(deadline) if page.target == target), None)
        if page is None:
            raise Gone()
        _, answer = self.ask([page], f'find({number})', deadline)[0]
        if answer is None:
            raise Unanswered()
        if answer['token'] != token or not answer['exists']:
            raise Gone()
        placed = list(place(target, answer, bounds, documents, windows)) if answer['visible'] else []
        if not placed:
            raise Hidden()
        return placed[0]

    def ask(self, pages, call, deadline):
        """
        Calls a function of page.js in each page, in all at once. Returns the pages with the answers: None for one that
        does not answer, for example while it shows a dialogue.
        """
        able = list(pages)

        def step(work):
            for page in list(able):
                try:
                    work(page)
                except (Unanswered, Refused, KeyError):
                    able.remove(page)

        worlds, values = {}, {}
        try:
            step(lambda page: page.ask_session())
            step(lambda page: page.hear_session(deadline))
            step(lambda page: page.ask_world())
            step(lambda page: worlds.update({page.target: page.hear_world(deadline)}))
            step(lambda page: page.ask_value(worlds[page.target], call))
            step(lambda page: values.update({page.target: page.hear_value(worlds[page.target], call, deadline)}))
        except (OSError, ValueError, websocket.WebSocketException):
            self.disconnect()
        return [(page, values.get(page.target)) for page in pages]

    def disconnect(self):
        if self.devtools is not None:
            self.devtools.close()
            self.devtools = None
            self.process = None


def place(target, answer, bounds, documents, windows):
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
        placed = {'key': ('page', target, answer['token'], element['id']), 'role': element['role'], 'name': element['name'],
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
