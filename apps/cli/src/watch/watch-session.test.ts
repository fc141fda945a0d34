import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { WatchedSession } from '../../test/watched-session.ts';
import { type WatchOptions, watchSession } from './watch-session.ts';

const TIMEOUT = { timeout: 60_000 };
const WAIT = { timeout: 20_000 };
const RED = [200, 0, 0];
const BLUE = [0, 64, 160];

let session: WatchedSession;
let links: string[];
let stop: AbortController;
let watching: Promise<void>;

beforeEach(async () => {
  session = await WatchedSession.start();
  links = [];
  stop = new AbortController();
  watching = Promise.resolve();
});
afterEach(async () => {
  stop.abort(new Error('the test has ended'));
  await Promise.allSettled([watching]);
  await session[Symbol.asyncDispose]();
});

/** Watches the session; returns the link to the page. */
async function watch(more: Partial<WatchOptions> = {}): Promise<string> {
  watching = watchSession((options) => session.connect(options), {
    session: 'a-session',
    control: false,
    port: 0,
    onLink: (link) => links.push(link),
    signal: stop.signal,
    ...more,
  });
  watching.catch(() => undefined);
  await expect.poll(() => links.length, WAIT).toBe(1);
  return links[0] ?? '';
}

describe('the page in a browser', TIMEOUT, () => {
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    const executablePath = '/usr/bin/chromium';
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  }, TIMEOUT.timeout);
  afterAll(() => browser.close());

  beforeEach(async () => {
    page = await browser.newPage({ viewport: { width: 1000, height: 700 } });
  });
  afterEach(() => page.close());

  /** Opens the page of a session that is watched. */
  async function open(more: Partial<WatchOptions> = {}): Promise<void> {
    await page.goto(await watch(more));
    await showsStatus('Connected');
  }

  const showsStatus = (text: string, on = page) =>
    expect.poll(() => on.locator('#status').textContent(), WAIT).toBe(text);

  /** A tile of one colour at a position. */
  async function tile(x: number, y: number, colour: readonly number[]) {
    const base64 = await page.evaluate<string>(`(() => {
      const canvas = document.createElement('canvas');
      canvas.width = canvas.height = 128;
      const context = canvas.getContext('2d');
      context.fillStyle = 'rgb(${colour})';
      context.fillRect(0, 0, 128, 128);
      return canvas.toDataURL('image/jpeg').split(',')[1];
    })()`);
    return { x, y, width: 128, height: 128, image: Buffer.from(base64, 'base64') };
  }

  /** Whether a pixel of the display has a colour, as far as a JPEG keeps it. */
  async function has(x: number, y: number, colour: readonly number[], on = page) {
    const seen = await on.evaluate<number[]>(
      `[...document.querySelector('canvas').getContext('2d').getImageData(${x}, ${y}, 1, 1).data]`,
    );
    return colour.every((value, index) => Math.abs(value - (seen[index] ?? -99)) < 8);
  }

  const shows = (x: number, y: number, colour: readonly number[], on = page) =>
    expect.poll(() => has(x, y, colour, on), WAIT).toBe(true);

  /** Where a point of the display is in the page. */
  async function inPage(x: number, y: number) {
    const box = await page.locator('canvas').boundingBox();
    if (box === null) throw new Error('the page shows no display');
    return {
      x: box.x + (x * box.width) / 1280 + 0.1,
      y: box.y + (y * box.height) / 800 + 0.1,
    };
  }

  test('draws each update, confirms it, and forgets nothing of those before', async () => {
    await open({ fps: 2 });
    expect(session.received[0]).toMatchObject({ name: 'watch', arguments: { fps: 2 } });
    session.show(2, [await tile(0, 0, RED), await tile(256, 128, RED)]);
    await shows(64, 64, RED);
    session.show(3, [await tile(256, 128, BLUE)]);
    await shows(300, 200, BLUE);
    await shows(64, 64, RED);
    await expect.poll(() => session.confirmed, WAIT).toEqual([1, 2, 3]);
    expect(await page.title()).toBe('Desktop of a-session');
    expect(page.url()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
  });

  test('goes on after a part that is no picture', async () => {
    await open();
    const broken = { ...(await tile(0, 0, RED)), image: Buffer.from('ffd8ffc0', 'hex') };
    session.show(2, [broken, await tile(128, 0, RED)]);
    await shows(200, 64, RED);
    await expect.poll(() => page.locator('#notice').isVisible(), WAIT).toBe(true);
    session.show(3, [await tile(0, 0, BLUE)]);
    await shows(64, 64, BLUE);
  });

  test('only shows the desktop, unless it was asked to control it', async () => {
    await open();
    const { x, y } = await inPage(100, 100);
    await page.mouse.click(x, y);
    await page.keyboard.type('secret');
    session.show(2, [await tile(0, 0, RED)]);
    await shows(64, 64, RED);
    expect(await page.locator('#mode').textContent()).toBe('View only');
    expect(session.inputs).toEqual([]);
  });

  test('passes on clicks, drags, the wheel and keys, where they were made', async () => {
    await open({ control: true });
    const inputs = (...expected: unknown[]) => {
      const isMove = (input: unknown) => JSON.stringify(input).includes('"move"');
      const others = () => session.inputs.filter((input) => !isMove(input));
      return expect.poll(others, WAIT).toEqual(expected);
    };
    const at = await inPage(640, 400);
    await page.mouse.click(at.x, at.y);
    const click = ['mouse', { action: 'click', x: 640, y: 400, button: 'left' }];
    await inputs(click);
    await page.mouse.click(at.x, at.y, { button: 'right' });
    const right = ['mouse', { action: 'click', x: 640, y: 400, button: 'right' }];
    await inputs(click, right);
    const to = await inPage(1279, 799);
    await page.mouse.down();
    await page.mouse.move(to.x, to.y, { steps: 5 });
    await page.mouse.up();
    const down = ['mouse', { action: 'down', x: 640, y: 400, button: 'left' }];
    const up = ['mouse', { action: 'up', x: 1279, y: 799, button: 'left' }];
    await inputs(click, right, down, up);
    await page.mouse.wheel(0, 250);
    // The position of a wheel is in whole pixels of the page.
    const near = { x: expect.any(Number), y: expect.any(Number) };
    const scroll = ['mouse', { action: 'scroll', ...near, dx: 0, dy: 2 }];
    await inputs(click, right, down, up, scroll);
    const keys: [keys: string, input: object][] = [
      ['X', { action: 'type', text: 'X' }],
      ['Control+a', { action: 'press', keys: 'ctrl+a' }],
      ['Shift+Tab', { action: 'press', keys: 'shift+Tab' }],
    ];
    for (const [pressed, input] of keys) {
      if (pressed.length === 1) await page.keyboard.type(pressed);
      else await page.keyboard.press(pressed);
      await expect.poll(() => session.inputs.at(-1), WAIT).toEqual(['keyboard', input]);
    }
  });

  test('says why an input was refused', async () => {
    await open({ control: true });
    session.answers = false;
    await page.keyboard.type('x');
    await expect.poll(() => session.inputs, WAIT).toHaveLength(1);
    const call = session.received.at(-1);
    const id = call?.type === 'tool_call' ? call.id : undefined;
    session.send({ type: 'error', code: 'frame_rate', message: 'Too many frames.', id });
    await expect.poll(() => page.locator('#notice').textContent(), WAIT).toBe('Too many frames.');
  });

  test('comes back when it is loaded again', async () => {
    await open();
    await page.reload();
    await showsStatus('Connected');
    session.show(2, [await tile(0, 0, RED)]);
    await shows(64, 64, RED);
    expect(links).toHaveLength(1);
  });

  test('that is closed stops the view, and another link is printed', async () => {
    await open();
    await page.close();
    await expect.poll(() => session.isWatched, WAIT).toBe(false);
    await expect.poll(() => links.length, WAIT).toBe(2);
    page = await browser.newPage();
    await page.goto(links[0] ?? '');
    await showsStatus('The command has ended, or this link was used already.');
    await page.goto(`about:blank`);
    await page.goto(links[1] ?? '');
    await showsStatus('Connected');
    await expect.poll(() => session.isWatched, WAIT).toBe(true);
  });

  test('shows a lost connection, and then the desktop again', async () => {
    await open();
    session.onWatch = () => undefined;
    session.cut();
    await expect
      .poll(() => session.received.filter((frame) => frame.type === 'tool_call').length, WAIT)
      .toBe(2);
    await showsStatus('Connected');
  });

  test('shows the end of the session, with which the command ends', async () => {
    await open();
    session.end();
    await watching;
    await showsStatus('The session has ended.');
  });

  test('shows that the command was ended', async () => {
    await open();
    stop.abort(new Error('interrupted'));
    await watching;
    await showsStatus('The command was ended.');
  });
});

/** A page that does what it wants. */
async function openRaw(link: string) {
  const { origin, host, hash } = new URL(link);
  const socket = new WebSocket(`ws://${host}/view?token=${hash.slice(1)}`, { headers: { origin } });
  const messages: { type: string; [field: string]: unknown }[] = [];
  let updates = 0;
  socket.on('message', (data, isBinary) => {
    if (isBinary) updates += 1;
    else messages.push(JSON.parse(data.toString()));
  });
  await expect.poll(() => messages.length, WAIT).toBeGreaterThan(1);
  const send = (message: unknown) => socket.send(JSON.stringify(message));
  return { socket, messages, send, updates: () => updates };
}

const CLICK = { type: 'input', name: 'mouse', arguments: { action: 'click', x: 1, y: 1 } };

describe('a hostile page with the link', TIMEOUT, () => {
  test('cannot control a desktop that is only watched', async () => {
    const page = await openRaw(await watch());
    await expect.poll(page.updates, WAIT).toBe(1);
    page.send(CLICK);
    page.send({ ...CLICK, name: 'shell' });
    page.send({ type: 'drawn', number: 1 });
    await expect.poll(() => session.confirmed, WAIT).toEqual([1]);
    expect(session.received.map((frame) => 'name' in frame && frame.name)).toEqual([
      'watch',
      false,
    ]);
  });

  test('makes no other calls than those of mouse and keyboard, and none but one at a time', async () => {
    const page = await openRaw(await watch({ control: true }));
    session.answers = false;
    page.socket.send(Buffer.from([1, 2, 3]));
    page.socket.send('rubbish');
    for (const message of [null, [], {}, { type: 'drawn', number: 'x' }, { type: 'input' }]) {
      page.send(message);
    }
    page.send({ ...CLICK, name: 'screenshot' });
    page.send({ ...CLICK, name: 'constructor' });
    page.send({ ...CLICK, arguments: 'x' });
    for (let times = 0; times < 500; times += 1) page.send(CLICK);
    await expect.poll(() => page.messages.some(({ type }) => type === 'notice'), WAIT).toBe(true);
    expect(session.inputs).toHaveLength(1);
  });

  test('that draws nothing gets one update, and the service no confirmation', async () => {
    const page = await openRaw(await watch());
    await expect.poll(page.updates, WAIT).toBe(1);
    session.show(2);
    page.send({ type: 'drawn', number: 2 });
    page.send({ type: 'drawn', number: 1 });
    await expect.poll(page.updates, WAIT).toBe(2);
    expect(session.confirmed).toEqual([1]);
  });

  test('that is replaced by others, one after the other, does not end the command', async () => {
    const first = await openRaw(await watch());
    // It answers no closing handshake.
    first.socket.pause();
    const tokenOf = ({ messages }: typeof first) => String(messages[0]?.token);
    const { origin } = new URL(links[0] ?? '');
    const second = await openRaw(`${origin}/#${tokenOf(first)}`);
    const third = await openRaw(`${origin}/#${tokenOf(second)}`);
    await expect.poll(third.updates, WAIT).toBe(1);
    third.send({ type: 'drawn', number: 1 });
    await expect.poll(() => session.confirmed.length, WAIT).toBeGreaterThan(0);
    first.socket.terminate();
  });
});

describe('the command', TIMEOUT, () => {
  test('watches the session only while a page is open', async () => {
    await watch();
    const { origin } = new URL(links[0] ?? '');
    expect((await fetch(origin)).status).toBe(200);
    expect(session.received).toEqual([]);
  });

  test('fails when the service refuses the view', async () => {
    session.onWatch = (id) =>
      session.send({ type: 'error', code: 'tool_not_available', message: 'No.', id });
    const page = await openRaw(await watch());
    await expect(watching).rejects.toMatchObject({ code: 'tool_not_available' });
    const reason = 'The session cannot be shown any more.';
    await expect.poll(() => page.messages.at(-1), WAIT).toEqual({ type: 'ended', reason });
  });

  test('asks again when the view was refused for its rate', async () => {
    session.onWatch = (id) => {
      session.onWatch = undefined;
      session.send({ type: 'error', code: 'frame_rate', message: 'Too many.', id });
    };
    const page = await openRaw(await watch());
    await expect.poll(page.updates, WAIT).toBe(1);
  });
});
