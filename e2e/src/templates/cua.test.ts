import type { DesktopCalls } from '@svc/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodePng } from '../../test/png.ts';
import { framesOf, type SessionClient } from '../../test/sessions/session-client.ts';
import { SessionFixture } from '../../test/sessions/session-fixture.ts';
import { TestSandbox } from '../../test/test-sandbox.ts';

const TIMEOUT = { timeout: 600_000 };
const WAIT = { timeout: 300_000, interval: 1_000 };
const SITE = 'http://127.0.0.1:8000/';
const ELEMENTS = 'http://127.0.0.1:7310/elements';
/** A point of the field, which fills the upper part of the page, and of the button, which fills the lower half. */
const FIELD = { x: 640, y: 250 };
const BUTTON = { x: 640, y: 650 };
const GREEN = [0, 128, 64];
const WHITE = [255, 255, 255];

/** Serves a form inside the sandbox, and writes down each request. The form also sends what is random or kept in the page. */
const SERVER = `
import http.server, json, random, urllib.parse
PAGE = '''<!doctype html><meta charset="utf-8"><title>Order</title>
<style>input, button { position: fixed; left: 0; width: 100%; border: 0; background: white }</style>
<form method="post" action="/sent"><label>Full name <input name="name" autocomplete="off" style="top: 0; height: 40%"></label>
<input type="hidden" name="random"><input type="hidden" name="kept">
<button style="top: 50%; height: 50%; background: rgb(0, 128, 64)">Send</button></form>
<script>document.querySelector('[name=random]').value =
  [Math.random(), ...crypto.getRandomValues(new Uint32Array(4)), crypto.randomUUID()].join();
  document.querySelector('[name=kept]').value = localStorage.getItem('visited') ?? 'nothing';
  localStorage.setItem('visited', 'before')</script>'''
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
  readonly kept?: string;
}

const call = (name: string, input: object) => ({
  reply: { tool_calls: [{ name: `desktop_${name}`, arguments: input }] },
});
const BAR = 'textbox "Address and search bar"';
/** The agents that get the tools from an MCP server, what tells their requests from others, and how their models name a tool. */
const VENDOR_AGENTS = [
  { agent: 'claude-code', when: { system: 'Claude' }, prefix: 'mcp__svc__' },
  { agent: 'codex', when: { path: '/responses' }, prefix: '' },
] as const;
const VENDOR_RULES = VENDOR_AGENTS.flatMap(({ when, prefix }) => {
  const use = (name: string) => ({
    tool_calls: [{ name: `${prefix}desktop_${name}`, arguments: {} }],
  });
  return [
    { when: { ...when, user: 'look at the desktop' }, reply: use('elements') },
    { when: { ...when, tool: BAR }, reply: use('screenshot') },
    { when: { ...when, tool: '' }, reply: { text: 'looked' } },
  ];
});
/** The first rule that fits answers: what comes later in the work stands ahead of what can still be seen from before. */
const SCRIPT = {
  rules: [
    ...VENDOR_RULES,
    { when: { user: 'fill' }, ...call('elements', {}) },
    { when: { tool: 'Clicked e\\d+ textbox "Full name"' }, ...call('type', { text: 'Ada' }) },
    { when: { tool: 'Typed 3 ' }, ...call('click', BUTTON) },
    { when: { tool: 'Clicked at' }, reply: { text: 'sent' } },
    { when: { tool: '(e\\d+) textbox "Full name"' }, ...call('click_element', { id: '$1' }) },
    // The page has not loaded yet.
    { when: { tool: `${BAR}[^\\n]*value "[^"]*127` }, ...call('wait', { seconds: 1 }) },
    { when: { tool: 'Waited' }, ...call('elements', {}) },
    { when: { tool: `Clicked e\\d+ ${BAR}` }, ...call('elements', {}) },
    { when: { tool: `${BAR}[^\\n]*, focused` }, ...call('key', { keys: 'ctrl+a' }) },
    { when: { tool: 'Pressed ctrl\\+a' }, ...call('type', { text: `${SITE}\n` }) },
    { when: { tool: `Typed ${SITE.length + 1} ` }, ...call('elements', {}) },
    { when: { tool: `(e\\d+) ${BAR}` }, ...call('click_element', { id: '$1' }) },
    // The list is incomplete: the desktop is too busy to describe all elements in time.
    { when: { tool: '^e\\d+ window "[^"]*Chromium"' }, ...call('wait', { seconds: 1 }) },
    { when: { user: 'move' }, ...call('move', { x: 1, y: 1 }) },
    { when: { tool: 'The mouse is' }, reply: { text: 'moved' } },
    { when: { tool: '([^]*)' }, reply: { text: 'Unexpected: $1' } },
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
  await fixture.account.client.sandboxes.files.write(id, '/root/site.py', SERVER);
  await run(id, 'setsid python3 site.py >site.log 2>&1 </dev/null &');
  await run(id, `curl -s --retry 60 --retry-delay 1 --retry-connrefused -o /dev/null ${SITE}`);
  await run(id, ': >received');
}

async function received(id: string): Promise<Received[]> {
  const lines = (await run(id, 'cat received')).split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line));
}

const sentFrom = async (id: string) => (await received(id)).filter(({ path }) => path === '/sent');

/** What is in a field on the desktop of a sandbox; undefined if there is no such field. */
async function fieldValue(id: string, name: string): Promise<string | undefined> {
  const { elements } = JSON.parse(await run(id, `curl -sf ${ELEMENTS}`));
  return elements.find((element: { name: string }) => element.name === name)?.value;
}

/** Asks for something on the desktop, and waits for the result. */
async function use(id: string, ask: () => void) {
  ask();
  return await client.until('tool_result', (frame) => frame.id === id);
}

test('an agent fills a form by elements and pixels', TIMEOUT, async () => {
  const frames = await client.task('Please fill the form', 'fill');
  const completed = framesOf(frames, 'task_completed');
  expect(completed, client.summary()).toMatchObject([{ result: 'sent' }]);
  await expect.poll(() => sentFrom(vmId), WAIT).toHaveLength(1);
  expect(await sentFrom(vmId)).toMatchObject([{ name: 'Ada' }]);
});

test.each(VENDOR_AGENTS)('$agent has the tools of the desktop', TIMEOUT, async ({ agent }) => {
  const session = await fixture.create(agent, { template: 'cua' });
  const attached = await fixture.attach(session);
  const frames = await attached.task('Please look at the desktop', 'look');
  expect(framesOf(frames, 'task_completed'), attached.summary()).toMatchObject([
    { result: 'looked' },
  ]);
  const [listed, seen] = framesOf(frames, 'tool_result');
  expect(listed?.content).toContain(BAR);
  expect(seen).toMatchObject({ is_error: false });
  await attached.close();
  await fixture.sessions.delete(session.chat_session_id);
});

test('a client sees the desktop and uses its mouse and keyboard', TIMEOUT, async () => {
  const { connection } = client;
  const mouse = (id: string, input: DesktopCalls['mouse']) =>
    use(id, () => connection.callTool('mouse', input, { id }));
  const keyboard = (id: string, input: DesktopCalls['keyboard']) =>
    use(id, () => connection.callTool('keyboard', input, { id }));
  // The answer to the form is an empty form.
  await expect.poll(() => fieldValue(vmId, 'Full name'), WAIT).toBe('');
  const shot = await use('s1', () => connection.callTool('screenshot', {}, { id: 's1' }));
  expect(shot).toMatchObject({ is_error: false });
  await expect.poll(() => client.screenshots.length, WAIT).toBe(1);
  const picture = decodePng(client.screenshots[0] ?? Buffer.alloc(0));
  expect([picture.width, picture.height]).toEqual([1280, 800]);
  expect(picture.at(BUTTON.x + 200, BUTTON.y)).toEqual(GREEN);
  expect(picture.at(FIELD.x, FIELD.y)).toEqual(WHITE);

  await mouse('m1', { action: 'click', ...FIELD });
  await keyboard('k1', { action: 'type', text: 'Bo' });
  await keyboard('k2', { action: 'press', keys: 'Return' });
  await expect.poll(() => sentFrom(vmId), WAIT).toHaveLength(2);
  expect(await sentFrom(vmId)).toMatchObject([{ name: 'Ada' }, { name: 'Bo' }]);

  const refused = await mouse('m2', { action: 'move', x: 1280, y: 0 });
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

test('two sandboxes share no cookie, no profile and no random number', TIMEOUT, async () => {
  const bar = `curl -sf ${ELEMENTS} | jq -er '.elements[] | select(.name == "Address and search bar").box | "\\(.x + 50) \\(.y + 10)"'`;
  await run(other.id, `xdotool mousemove $(${bar}) click 1 key ctrl+a type --delay 10 ${SITE}`);
  await run(other.id, 'xdotool key Return');
  await expect.poll(() => fieldValue(other.id, 'Full name'), WAIT).toBe('');
  await run(other.id, `xdotool mousemove ${BUTTON.x} ${BUTTON.y} click 1`);
  await expect.poll(() => sentFrom(other.id), WAIT).toHaveLength(1);
  const [visit, sent] = await received(other.id);
  expect(visit).toMatchObject({ path: '/', cookie: null });
  expect(sent).toMatchObject({ kept: 'nothing' });
  const theirs = await received(vmId);
  expect(theirs[0]).toMatchObject({ path: '/', cookie: null });
  expect(theirs.map(({ cookie }) => cookie)).not.toContain(sent?.cookie);
  const seen = theirs.flatMap(({ random }) => random?.split(',') ?? []);
  const own = sent?.random?.split(',') ?? [];
  expect(own).toHaveLength(6);
  expect(seen).toHaveLength(12);
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
    await expect.poll(() => fieldValue(vmId, 'Address and search bar'), WAIT).toBeDefined();
  },
);
