"""The UI-element detection server: what is on the display, for programs inside the sandbox.

HTTP on the loopback address. It refuses requests that a browser makes for a web page, so that no page can look at the
display. See docs/desktop.md for the routes.
"""

import argparse
import concurrent.futures
import http.server
import json
import os
import select
import sys
import threading
import time
import urllib.parse

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import accessibility  # noqa: E402 - files next to this one, which isolated mode does not look for
import browser  # noqa: E402
import changes  # noqa: E402
import failures  # noqa: E402
import geometry  # noqa: E402
import ids  # noqa: E402
import screen  # noqa: E402
import stacking  # noqa: E402

MAX_ELEMENTS, DEFAULT_ELEMENTS = 500, 200
MAX_NAME = 200
SECONDS = 20
MAX_CONNECTIONS = 16
CLIENT_SECONDS = 30
MIN_IMAGE, MAX_IMAGE = 400_000, 8 << 20
MAX_BODY = 64 << 10
# Of pictures for a live view, as in the limits of the contract.
MIN_QUALITY, DEFAULT_QUALITY, MAX_QUALITY = 20, 70, 90


class Problem(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Detector:
    """Finds elements. One thread does all of it: neither source of elements is made for several."""

    def __init__(self, options):
        self.framebuffer = options.framebuffer
        self.changes = changes.Changes(options.framebuffer)
        self.ids = ids.Ids()
        self.display = stacking.Display()
        self.tree = accessibility.Tree()
        self.browser = browser.Browser(options.devtools_port)
        self.worker = concurrent.futures.ThreadPoolExecutor(1)

    def elements(self, limit):
        """The elements, nearest the top left corner first, and whether some are missing."""
        return self.work(self.find, limit)

    def element(self, known):
        """One element as it is now. Asks only the program that shows it."""
        return self.work(self.find_one, known)

    def work(self, task, *parameters):
        try:
            return self.worker.submit(task, *parameters).result(SECONDS + 10)
        except concurrent.futures.TimeoutError as error:
            raise Problem(503, 'the programs of the desktop do not answer') from error

    def find(self, limit):
        deadline = time.monotonic() + SECONDS
        bounds, windows = self.bounds(), self.display.windows()
        try:
            pages, is_silent = self.browser.pages(deadline), False
        except failures.Unanswered:
            pages, is_silent = [], True
        found = self.tree.find(bounds, windows, self.browser.process, deadline, limit)
        in_pages, is_cut = self.browser.elements(pages, bounds, found, windows, deadline, limit)
        bare = [self.bare_window(window, bounds, windows) for window in windows.windows]
        elements = [element for element in [*found.elements, *in_pages, *bare] if element is not None]
        elements.sort(key=lambda element: (element['box'][1], element['box'][0]))
        truncated = found.truncated or is_silent or is_cut or len(elements) > limit
        return [self.describe(element) for element in elements[:limit]], truncated

    def find_one(self, known):
        key = self.ids.key(known)
        if key is None:
            raise Problem(404, f'there is no element {known}')
        deadline = time.monotonic() + SECONDS
        try:
            return self.describe(self.look_up(key, deadline))
        except failures.Gone as error:
            raise Problem(404, f'the element {known} is gone; list the elements again') from error
        except failures.Hidden as error:
            raise Problem(409, f'nothing of the element {known} can be seen at the moment: it is hidden, covered or scrolled away') from error
        except failures.Unanswered as error:
            raise Problem(503, f'the program that shows the element {known} does not answer; try again in a moment') from error

    def look_up(self, key, deadline):
        source, *rest = key
        bounds, windows = self.bounds(), self.display.windows()
        if source == 'window':
            return self.tree.element(key, bounds, windows, deadline)
        if source == 'page':
            documents = self.tree.current_documents(deadline)
            return self.browser.element(*rest, bounds, documents, windows, deadline)
        window = next((window for window in windows.windows if window.number == rest[0]), None)
        if window is None:
            raise failures.Gone()
        element = self.bare_window(window, bounds, windows)
        if element is None:
            raise failures.Hidden()
        return element

    def bounds(self):
        return (0, 0, *screen.size(self.framebuffer))

    def bind_keys(self, text):
        """Makes sure that the keyboard has a key for each character. Returns how many were missing."""
        return self.work(self.display.bind_keys, text)

    def bare_window(self, window, bounds, windows):
        """A window as an element, also one of a program without accessibility. None outside the display."""
        box = geometry.clip(window.box, bounds)
        if box is None:
            return None
        states = [] if windows.shows(window, geometry.centre(box)) else ['covered']
        return {'key': ('x', window.number), 'role': 'window', 'name': window.name, 'box': box, 'source': 'window',
                'states': states}

    def describe(self, element):
        x, y, width, height = element['box']
        described = {'id': self.ids.of(element['key']), 'role': element['role'],
                     'name': ' '.join(element['name'].split())[:MAX_NAME],
                     'box': {'x': x, 'y': y, 'width': width, 'height': height}, 'source': element['source']}
        if element['states']:
            described['states'] = element['states']
        if 'value' in element:
            described['value'] = element['value']
        return described

    def picture(self):
        try:
            return screen.capture(self.framebuffer)
        except (OSError, ValueError) as error:
            raise Problem(503, 'there is no display') from error


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    timeout = CLIENT_SECONDS
    detector = None
    slots = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def do_GET(self):
        self.handle_request(self.get)

    def do_POST(self):
        self.handle_request(self.post)

    def handle_request(self, answer):
        if not self.slots.acquire(blocking=False):
            self.send_json(503, {'error': 'too many requests at once'})
            return
        try:
            self.refuse_pages()
            answer()
        except Problem as problem:
            self.send_json(problem.status, {'error': str(problem)})
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one request, the server goes on
            print(f'{type(error).__name__}: {error}', file=sys.stderr, flush=True)
            self.send_json(500, {'error': f'{type(error).__name__}: {error}'})
        finally:
            self.slots.release()

    def get(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == '/elements':
            elements, truncated = self.detector.elements(number(query, 'limit', DEFAULT_ELEMENTS, 1, MAX_ELEMENTS))
            self.send_json(200, {'elements': elements, 'truncated': truncated})
        elif url.path.startswith('/elements/'):
            self.send_json(200, self.detector.element(url.path.removeprefix('/elements/')))
        elif url.path == '/screenshot':
            self.screenshot(query)
        elif url.path == '/changes':
            self.send_changes(query)
        else:
            raise Problem(404, 'the routes are /elements, /elements/{id}, /screenshot and /changes')

    def post(self):
        if self.path != '/keyboard':
            raise Problem(404, 'the only route for POST is /keyboard')
        size = int(self.headers.get('Content-Length', '0'))
        if not 0 < size <= MAX_BODY:
            raise Problem(413, f'a text of at most {MAX_BODY} bytes is required')
        text = self.rfile.read(size).decode(errors='replace')
        self.send_json(200, {'added': self.detector.bind_keys(text)})

    def screenshot(self, query):
        kind = query.get('format', 'png')
        if kind not in ('png', 'jpeg'):
            raise Problem(400, 'format is png or jpeg')
        limit = number(query, 'max_bytes', MAX_IMAGE, MIN_IMAGE, MAX_IMAGE)
        if query.get('annotate') in ('1', 'true'):
            elements, _ = self.detector.elements(number(query, 'limit', DEFAULT_ELEMENTS, 1, MAX_ELEMENTS))
            image = screen.annotate(self.detector.picture(), [one for one in elements if one['role'] != 'window'])
        else:
            image = self.detector.picture()
        media_type, content = screen.encode(image, kind, limit)
        self.send(200, media_type, content)

    def send_changes(self, query):
        since = number(query, 'since', 0, 0, (1 << 32) - 1)
        quality = number(query, 'quality', DEFAULT_QUALITY, MIN_QUALITY, MAX_QUALITY)
        deadline = time.monotonic() + number(query, 'wait', 0, 0, SECONDS)
        try:
            update = self.detector.changes.update(since, quality, deadline, self.wait)
        except (OSError, ValueError) as error:
            raise Problem(503, 'there is no display') from error
        self.send(200, 'application/octet-stream', update)

    def wait(self, seconds, *files):
        """Waits, or until a file can be read. Tells whether the client has neither left nor sent anything else meanwhile."""
        readable, _, _ = select.select([self.connection, *files], [], [], seconds)
        return self.connection not in readable

    def refuse_pages(self):
        host = self.headers.get('Host', '')
        port = self.server.server_address[1]
        if host not in (f'127.0.0.1:{port}', f'localhost:{port}'):
            raise Problem(403, 'unknown host')
        if self.headers.get('Origin') is not None or self.headers.get('Sec-Fetch-Site') is not None:
            raise Problem(403, 'not for web pages')

    def send_json(self, status, value):
        self.send(status, 'application/json', json.dumps(value, ensure_ascii=False).encode())

    def send(self, status, media_type, content):
        self.send_response(status)
        self.send_header('Content-Type', media_type)
        self.send_header('Content-Length', str(len(content)))
        self.send_header('Cache-Control', 'no-store')
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Requests are not worth a log."""


def number(query, name, default, least, most):
    try:
        value = int(query.get(name, default))
    except ValueError as error:
        raise Problem(400, f'{name} is no number') from error
    if not least <= value <= most:
        raise Problem(400, f'{name} is from {least} to {most}')
    return value


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 32


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--devtools-port', type=int, required=True)
    parser.add_argument('--framebuffer', required=True)
    options = parser.parse_args()
    Handler.detector = Detector(options)
    server = Server(('127.0.0.1', options.port), Handler)
    print(f'listening on port {server.server_address[1]}', flush=True)
    server.serve_forever()


if __name__ == '__main__':
    main()
