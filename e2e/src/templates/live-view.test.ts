import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { SessionAccess, ViewUpdate } from '@svc/sdk';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodePng } from '../../test/png.ts';
import type { SessionClient } from '../../test/sessions/session-client.ts';
import { SessionFixture } from '../../test/sessions/session-fixture.ts';
import { shared } from '../../test/shared-service.ts';

const TIMEOUT = { timeout: 600_000 };
const WAIT = { timeout: 300_000, interval: 1_000 };
const BROWSER_MS = 120_000;
const COMMAND_MS = 60_000;
const SVC = resolve(import.meta.dirname, '../../../apps/cli/bin/svc.js');
const PAGE = '/tmp/lamp.html';
/** Points of the button, one of them away from the pointer that clicks the other, and of the plain part of the page above it. */
const BUTTON = { x: 640, y: 650 };
const BESIDE = { x: 840, y: 650 };
const ABOVE = { x: 640, y: 250 };
const GREEN = [0, 128, 64];
const BLUE = [0, 64, 160];
const WHITE = [255, 255, 255];

/** A page whose lower part is a button that changes its colour, and which writes what is typed into its title. */
const LAMP = `<!doctype html><meta charset="utf-8"><title>Lamp</title>
<style>button { position: fixed; left: 0; top: 50%; width: 100%; height: 50%; border: 0; outline: 0; background: rgb(${GREEN}) }</style>
<button></button>
<script>
  const button = document.querySelector('button');
  button.onclick = () => { button.style.background = 'rgb(${BLUE})'; };
  addEventListener('keydown', ({ key }) => { document.title += key; });
</script>`;

let fixture: SessionFixture;
let session: SessionAccess;
let client: SessionClient;
let vmId: string;
let directory: string;
let command: ChildProcess;
let link: string;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  fixture = await SessionFixture.start({ rules: [] });
  session = await fixture.create('deictic', { template: 'cua' });
  [client, vmId] = await Promise.all([fixture.attach(session), fixture.sandboxOf(session)]);
  await fixture.account.client.sandboxes.files.write(vmId, PAGE, LAMP);
  await run(`curl -sf -X PUT 'http://127.0.0.1:9222/json/new?file://${PAGE}'`);
  directory = await mkdtemp(join(tmpdir(), 'svc-watch-'));
  link = await watchCommand();
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox'],
    timeout: BROWSER_MS,
  });
  page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
}, TIMEOUT.timeout);
afterAll(async () => {
  await browser?.close();
  command?.kill('SIGKILL');
  if (directory !== undefined) await rm(directory, { recursive: true });
  await fixture?.end();
});

/** Starts `svc session watch`, as where the session was started; returns the link that it prints. */
async function watchCommand(): Promise<string> {
  const sessions = join(directory, 'svc/sessions');
  await mkdir(sessions, { recursive: true });
  await writeFile(join(sessions, `${session.chat_session_id}.json`), JSON.stringify(session));
  const { baseUrl, caFile } = shared.address;
  const env = {
    ...process.env,
    XDG_CONFIG_HOME: directory,
    SVC_BASE_URL: baseUrl,
    SVC_CA_FILE: caFile,
    SVC_API_KEY: fixture.account.apiKey,
  };
  const args = ['session', 'watch', session.chat_session_id, '--control', '--no-open'];
  const child = spawn(process.execPath, [SVC, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  command = child;
  const [line] = await once(createInterface(child.stdout), 'line', {
    signal: AbortSignal.timeout(COMMAND_MS),
  });
  return line;
}

async function run(shell: string): Promise<string> {
  const { output, exit_code } = await fixture.account.client.sandboxes.exec(vmId, shell);
  expect(exit_code, `${shell}\n${output}`).toBe(0);
  return output.trim();
}

/** The colour of a point of the display, as the local page shows it. */
async function shown({ x, y }: { x: number; y: number }): Promise<number[]> {
  const data = `document.querySelector('canvas').getContext('2d').getImageData(${x}, ${y}, 1, 1).data`;
  return (await page.evaluate<number[]>(`[...${data}]`)).slice(0, 3);
}

/** A colour as far as a JPEG keeps it. */
const about = (colour: readonly number[]) => colour.map((value) => expect.closeTo(value, -1));

/** Where a point of the display is in the local page. */
async function inPage({ x, y }: { x: number; y: number }): Promise<[number, number]> {
  const box = await page.locator('canvas').boundingBox();
  if (box === null) throw new Error('the page shows no display');
  return [box.x + (x * box.width) / 1280, box.y + (y * box.height) / 800];
}

/** The titles of the desktop's pages. */
const titles = () => run("curl -sf http://127.0.0.1:9222/json/list | jq -r '.[].title'");

test(
  'a local page shows the desktop, and passes on the mouse and the keyboard',
  TIMEOUT,
  async () => {
    await page.goto(link);
    await expect.poll(() => shown(BESIDE), WAIT).toEqual(about(GREEN));
    await expect.poll(() => shown(ABOVE), WAIT).toEqual(about(WHITE));
    await page.mouse.click(...(await inPage(BUTTON)));
    await expect.poll(() => shown(BESIDE), WAIT).toEqual(about(BLUE));
    await page.keyboard.type('on');
    await expect.poll(titles, WAIT).toContain('Lampon');
  },
);

test('the page shows what a screenshot shows', TIMEOUT, async () => {
  const isSame = async () => {
    const count = client.screenshots.length;
    client.connection.callTool('screenshot', {});
    await expect.poll(() => client.screenshots.length, WAIT).toBeGreaterThan(count);
    const picture = decodePng(client.screenshots.at(-1) ?? Buffer.alloc(0));
    const points = [ABOVE, BESIDE, { x: 10, y: 790 }, { x: 1270, y: 500 }, { x: 300, y: 300 }];
    const seen = await Promise.all(points.map(shown));
    return points.every(({ x, y }, index) =>
      picture.at(x, y).every((value, at) => Math.abs(value - (seen[index]?.[at] ?? -99)) < 10),
    );
  };
  await expect.poll(isSame, WAIT).toBe(true);
});

test('another client sees the whole display, and then only what has changed', TIMEOUT, async () => {
  const updates: ViewUpdate[] = [];
  const view = client.connection.watch({ fps: 5, quality: 50 });
  const watching = (async () => {
    for await (const update of view) updates.push(update);
  })();
  const tiles = () =>
    new Set(updates.flatMap(({ regions }) => regions.map(({ x, y }) => `${x},${y}`)));
  await expect.poll(() => tiles().size, WAIT).toBe(70);
  await expect.poll(() => updates.at(-1)?.isCurrent, WAIT).toBe(true);
  const before = updates.length;
  await run('xdotool mousemove 1200 300');
  const after = () => updates.slice(before).flatMap(({ regions }) => regions);
  await expect.poll(() => after().map(({ x, y }) => [x, y]), WAIT).toContainEqual([1152, 256]);
  expect(new Set(after().map(({ x, y }) => `${x},${y}`)).size).toBeLessThan(30);
  await view.return();
  await watching;
});

test('the command ends with the session', TIMEOUT, async () => {
  const ended = once(command, 'exit');
  await fixture.sessions.delete(session.chat_session_id);
  expect((await ended)[0]).toBe(0);
  await expect
    .poll(() => page.locator('#status').textContent(), WAIT)
    .toBe('The session has ended.');
});
