import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodePng } from '../../test/png.ts';
import { framesOf, type SessionClient } from '../../test/sessions/session-client.ts';
import { SessionFixture } from '../../test/sessions/session-fixture.ts';
import { TestSandbox } from '../../test/test-sandbox.ts';

const TIMEOUT = { timeout: 600_000 };
const WAIT = { timeout: 300_000, interval: 1_000 };
const ADDRESS = 'http://127.0.0.1:8000/';
/** A point of the button, which fills the lower half of the page. */
const BUTTON = { x: 640, y: 650 };
const GREEN = [0, 128, 64];

/** Serves a form inside the sandbox, and writes down each request. */
const SITE = `
import http.server, json, random, urllib.parse
PAGE = '''<!doctype html><meta charset="utf-8"><title>Order</title>
<form method="post" action="/sent"><label>Full name <input name="name" autocomplete="off"></label>
<input type="hidden" name="random"><button style="position:fixed;left:0;right:0;top:50%;bottom:0;border:0;background:rgb(0,128,64)">Send</button></form>
<script>document.querySelector('[name=random]').value =
  [Math.random(), ...crypto.getRandomValues(new Uint32Array(4)), crypto.randomUUID()].join()</script>'''
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer('')
    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers['Content-Length'])).decode())
    def answer(self, body):
        if self.path == '/favicon.ico':
            self.send_error(404)
            return
        with open('/root/received', 'a') as file:
            file.write(json.dumps({'path': self.path, 'cookie': self.headers['Cookie'], **dict(urllib.parse.parse_qsl(body))}) + '\\n')
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.send_header('Set-Cookie', 'visitor=%d; Max-Age=3600' % random.getrandbits(60))
        self.end_headers()
        self.wfile.write(PAGE.encode())
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(('127.0.0.1', 8000), Handler).serve_forever()
`;

interface Received {
  readonly path: string;
  readonly cookie: string | null;
  readonly name?: string;
  readonly random?: string;
}

const call = (name: string, input: object) => ({
  reply: { tool_calls: [{ name: `desktop_${name}`, arguments: input }] },
});
const SCRIPT = {
  rules: [
    { when: { user: 'fill' }, ...call('key', { keys: 'ctrl+l' }) },
    { when: { tool: 'Pressed ctrl\\+l' }, ...call('type', { text: `${ADDRESS}\n` }) },
    { when: { tool: `Typed ${ADDRESS.length + 1} ` }, ...call('elements', {}) },
    // Ahead of the list, because it describes the element too.
    { when: { tool: 'Clicked e' }, ...call('type', { text: 'Ada' }) },
    { when: { tool: '(e\\d+) textbox "Full name"' }, ...call('click_element', { id: '$1' }) },
    // The page has not loaded yet.
    { when: { tool: '^e\\d+ ' }, ...call('wait', { seconds: 1 }) },
    { when: { tool: 'Waited' }, ...call('elements', {}) },
    { when: { tool: 'Typed 3 ' }, ...call('click', BUTTON) },
    { when: { tool: 'Clicked at' }, reply: { text: 'sent' } },
    { when: { user: 'move' }, ...call('move', { x: 1, y: 1 }) },
    { when: { tool: 'The mouse is' }, reply: { text: 'moved' } },
  ],
};

let fixture: SessionFixture;
let client: SessionClient;
let vmId: string;
let other: TestSandbox;

beforeAll(async () => {
  fixture = await SessionFixture.start(SCRIPT);
  const session = await fixture.create('deictic', { template: 'cua' });
  vmId = await fixture.sandboxOf(session);
  client = await fixture.attach(session);
  other = await TestSandbox.create(fixture.account, { template: 'cua' });
  await Promise.all([serveForm(vmId), serveForm(other.id)]);
}, TIMEOUT.timeout);
afterAll(async () => {
  await other?.delete();
  await fixture?.end();
});

async function run(id: string, command: string): Promise<string> {
  const { output, exit_code } = await fixture.account.client.sandboxes.exec(id, command);
  expect(exit_code, `${command}\n${output}`).toBe(0);
  return output.trim();
}

async function serveForm(id: string): Promise<void> {
  await fixture.account.client.sandboxes.files.write(id, '/root/site.py', SITE);
  await run(id, 'touch received; setsid python3 site.py >site.log 2>&1 </dev/null &');
  await run(id, `curl -s --retry 60 --retry-delay 1 --retry-connrefused -o /dev/null ${ADDRESS}`);
  await run(id, ': >received');
}

async function received(id: string): Promise<Received[]> {
  const lines = (await run(id, 'cat received')).split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line));
}

const sentFrom = async (id: string) => (await received(id)).filter(({ path }) => path === '/sent');

/** Asks for something on the desktop, and waits for the result. */
async function use(id: string, ask: () => void) {
  ask();
  return await client.until('tool_result', (frame) => frame.id === id);
}

test('an agent fills a form by elements and pixels, again and again', TIMEOUT, async () => {
  for (const [index, id] of ['first', 'second'].entries()) {
    const frames = await client.task('Please fill the form', id);
    expect(framesOf(frames, 'task_completed')).toMatchObject([{ result: 'sent' }]);
    await expect.poll(() => sentFrom(vmId), WAIT).toHaveLength(index + 1);
  }
  expect((await sentFrom(vmId)).map(({ name }) => name)).toEqual(['Ada', 'Ada']);
});

test('a client sees the desktop and uses its mouse and keyboard', TIMEOUT, async () => {
  const { connection } = client;
  const shot = await use('s1', () => connection.callTool('screenshot', {}, { id: 's1' }));
  expect(shot).toMatchObject({ is_error: false });
  await expect.poll(() => client.screenshots.length, WAIT).toBe(1);
  const picture = decodePng(client.screenshots[0] ?? Buffer.alloc(0));
  expect([picture.width, picture.height]).toEqual([1280, 800]);
  expect(picture.at(BUTTON.x + 200, BUTTON.y)).toEqual(GREEN);
  expect(picture.at(BUTTON.x, 5)).not.toEqual(GREEN);

  const before = (await sentFrom(vmId)).length;
  const at = { action: 'click', ...BUTTON } as const;
  await use('k1', () =>
    connection.callTool('keyboard', { action: 'press', keys: 'F5' }, { id: 'k1' }),
  );
  await use('m1', () => connection.callTool('mouse', at, { id: 'm1' }));
  await expect.poll(async () => (await sentFrom(vmId)).length, WAIT).toBeGreaterThan(before);
  const outside = { action: 'move', x: 1280, y: 0 } as const;
  const refused = await use('m2', () => connection.callTool('mouse', outside, { id: 'm2' }));
  expect(refused).toMatchObject({ is_error: true, content: expect.stringContaining('1280,0') });
  connection.send({ type: 'tool_call', id: 'u1', name: 'shell', arguments: {} });
  const error = await client.until('error', (frame) => frame.id === 'u1');
  expect(error.code).toBe('tool_not_available');
});

test('commands and agents find the display', TIMEOUT, async () => {
  expect(await run(vmId, 'xdotool getdisplaygeometry')).toBe('1280 800');
  client.connection.exec('xdotool getdisplaygeometry', { id: 'size' });
  const { data } = await client.until('stdout', ({ id }) => id === 'size');
  expect(data.trim()).toBe('1280 800');
});

test('two sandboxes share no cookie and no random number', TIMEOUT, async () => {
  const keys = [
    'xdotool key ctrl+l',
    'curl -sf -X POST http://127.0.0.1:7310/settle',
    `xdotool type --delay 10 ${ADDRESS}`,
    'xdotool key Return',
  ];
  await run(other.id, keys.join(' && '));
  await expect.poll(async () => (await received(other.id)).length, WAIT).toBe(1);
  const clicks = `curl -sf http://127.0.0.1:7310/elements | grep -q '"Send"' && xdotool mousemove ${BUTTON.x} ${BUTTON.y} click 1`;
  await expect.poll(async () => (await other.exec(clicks)).exit_code, WAIT).toBe(0);
  await expect.poll(async () => (await sentFrom(other.id)).length, WAIT).toBe(1);
  const [visit, sent] = await received(other.id);
  expect(visit).toMatchObject({ path: '/', cookie: null });
  const theirs = await received(vmId);
  expect(theirs.map(({ cookie }) => cookie)).not.toContain(sent?.cookie);
  const seen = theirs.flatMap(({ random }) => random?.split(',') ?? []);
  const own = sent?.random?.split(',') ?? [];
  expect(own).toHaveLength(6);
  expect(seen.filter((value) => own.includes(value))).toEqual([]);
});

test(
  'a window manager and a browser that crash are started again, and the agent is told',
  TIMEOUT,
  async () => {
    await run(vmId, 'kill -9 $(pgrep -x openbox) && kill -9 $(pgrep -o -x chromium)');
    const starts = 'cat /run/desktop/starts/browser /run/desktop/starts/window-manager';
    await expect.poll(() => run(vmId, starts), WAIT).toBe('2\n2');
    const frames = await client.task('Please move the mouse', 'moved');
    const [result] = framesOf(frames, 'tool_result');
    expect(result?.content).toContain('the browser crashed and was started again');
    expect(result?.content).toContain('the window manager crashed and was started again');
    const elements = () => run(vmId, 'curl -s http://127.0.0.1:7310/elements');
    await expect.poll(elements, WAIT).toContain('Address and search bar');
  },
);
