import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type FormEvent, RunningDesktop } from '../../test/desktop/running-desktop.ts';
import { centreOf } from './desktop.ts';
import { Desktop, DesktopError, type UiElement } from './index.ts';

const WAIT = { timeout: 60_000, interval: 50 };

describe('a desktop', { timeout: 120_000 }, () => {
  let running: RunningDesktop;
  let desktop: Desktop;
  let signal: AbortSignal;

  beforeAll(async () => {
    running = await RunningDesktop.start();
    desktop = new Desktop(running.settings);
    await vi.waitFor(() => wanted('Full name'), WAIT);
  }, 120_000);

  afterAll(async () => {
    await running.close();
  });

  beforeEach(() => {
    signal = AbortSignal.timeout(100_000);
    running.events.length = 0;
  });

  async function find(name: string): Promise<UiElement | undefined> {
    const { elements } = await desktop.elements(500, AbortSignal.timeout(60_000));
    return elements.find((element) => element.name === name && element.role !== 'window');
  }

  async function wanted(name: string): Promise<UiElement> {
    const element = await find(name);
    if (element === undefined) throw new Error(`there is no element ${name}`);
    return element;
  }

  function happened(event: Partial<FormEvent>) {
    return expect.poll(() => running.events, WAIT).toContainEqual(expect.objectContaining(event));
  }

  /** A point in the area below the form. */
  async function inTheArea() {
    const { x, y } = centreOf(await wanted('Send'));
    return { x, y: y + 100 };
  }

  test('shows elements with roles, names and boxes, which keep their ids', async () => {
    const before = await wanted('Send');
    expect(before).toMatchObject({ role: 'button', source: 'window' });
    expect(await wanted('Full name')).toMatchObject({ role: 'textbox' });
    const at = centreOf(before);
    await desktop.click(at, 'left', signal);
    await happened({ event: 'sent' });
    expect(await wanted('Send')).toMatchObject({ id: before.id, box: before.box });
  });

  test('limits the number of elements and says so', async () => {
    const { elements, truncated } = await desktop.elements(1, signal);
    expect(elements).toHaveLength(1);
    expect(truncated).toBe(true);
  });

  test('types text of any script where the focus is', async () => {
    const field = await wanted('Full name');
    await desktop.clickElement(field.id, 'left', signal);
    await desktop.press('ctrl+a', signal);
    await happened({ event: 'key', key: 'a', control: true });
    const text = 'Ada <b>&"1+1"; é ñ 日本 русский こんにちは 😀';
    await desktop.type(text, signal);
    await happened({ event: 'text', text });
    expect(await wanted('Full name')).toMatchObject({ id: field.id, value: text });
    await desktop.clickElement((await wanted('Send')).id, 'left', signal);
    await happened({ event: 'sent', text });
  });

  test('clicks, double-clicks, holds, drags and scrolls at a position', async () => {
    const at = await inTheArea();
    await desktop.click(at, 'right', signal);
    await happened({ event: 'down', button: 3, ...at });
    await desktop.doubleClick(at, 'left', signal);
    await happened({ event: 'double', button: 1, ...at });
    await desktop.scroll(at, { dy: 1, dx: -1 }, signal);
    await happened({ event: 'scroll', direction: 'down', ...at });
    await happened({ event: 'scroll', direction: 'left', ...at });
    const to = { x: at.x + 40, y: at.y + 30 };
    await desktop.drag(at, to, 'left', signal);
    await happened({ event: 'up', button: 1, ...to });
    await desktop.down(at, 'middle', signal);
    await happened({ event: 'down', button: 2, ...at });
    await desktop.move({ x: at.x + 1, y: at.y }, signal);
    await happened({ event: 'move', x: at.x + 1, y: at.y });
    await desktop.up(to, 'middle', signal);
    await happened({ event: 'up', button: 2, ...to });
  });

  test('releases the button of a drag that is aborted', async () => {
    const at = await inTheArea();
    const abort = new AbortController();
    const drag = desktop.drag(at, { x: at.x + 50, y: at.y }, 'left', abort.signal);
    drag.catch(() => undefined);
    await happened({ event: 'down', button: 1, ...at });
    abort.abort(new Error('stopped'));
    await drag.catch((error) => expect(error).toMatchObject({ message: 'stopped' }));
    await happened({ event: 'up', button: 1 });
  });

  test('takes pictures as PNG, with boxes on request, and as JPEG when they are too large', async () => {
    const plain = await desktop.screenshot({}, signal);
    expect(plain.mediaType).toBe('image/png');
    expect(plain.data.subarray(1, 4).toString()).toBe('PNG');
    expect([plain.data.readUInt32BE(16), plain.data.readUInt32BE(20)]).toEqual([1280, 800]);
    const annotated = await desktop.screenshot({ annotate: true }, signal);
    expect(annotated.data.equals(plain.data)).toBe(false);
    const small = await desktop.screenshot({ maxBytes: 400_000 }, signal);
    expect(plain.data.length).toBeGreaterThan(400_000);
    expect(small.data.length).toBeLessThanOrEqual(400_000);
    expect(small.mediaType).toBe('image/jpeg');
    expect(small.data.readUInt16BE(0)).toBe(0xffd8);
  });

  test.each([
    ['a position outside the display', () => desktop.click({ x: 1280, y: 0 }, 'left', signal)],
    ['a negative position', () => desktop.move({ x: 0, y: -1 }, signal)],
    ['half a pixel', () => desktop.move({ x: 0.5, y: 1 }, signal)],
    ['a drag that leaves it', () => desktop.drag({ x: 1, y: 1 }, { x: 1, y: 800 }, 'left', signal)],
    ['an endless scroll', () => desktop.scroll({ x: 1, y: 1 }, { dy: 51 }, signal)],
    ['no text', () => desktop.type('', signal)],
    ['a text without end', () => desktop.type('x'.repeat(4_001), signal)],
    ['a key that does not exist', () => desktop.press('ctrl+foo', signal)],
    ['an element that is gone', () => desktop.clickElement('e99999', 'left', signal)],
    ['a wait without end', () => desktop.wait(31, signal)],
  ])('refuses %s', async (_, operation) => {
    await expect(operation()).rejects.toBeInstanceOf(DesktopError);
  });

  test('stops an operation whose signal aborts, and runs the next', async () => {
    const abort = new AbortController();
    const waiting = desktop.wait(30, abort.signal);
    abort.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    await expect(desktop.move({ x: 1, y: 1 }, abort.signal)).rejects.toThrow('stopped');
    await desktop.move({ x: 1, y: 1 }, signal);
  });

  test('reports a program that was started again, once', async () => {
    await running.countStarts('browser', 1);
    expect(await desktop.notices()).toEqual([]);
    await running.countStarts('browser', 2);
    expect(await desktop.notices()).toEqual(['[Note: the browser crashed and was started again.]']);
    expect(await desktop.notices()).toEqual([]);
  });

  test.each([
    ['the name of another host', { host: 'attacker.example' }],
    ['a page as its origin', { origin: 'https://attacker.example' }],
    ['the marks of a browser', { 'sec-fetch-site': 'cross-site' }],
  ])('refuses requests with %s', async (_, headers) => {
    const { request } = await import('node:http');
    const status = await new Promise((resolve, reject) => {
      request(`${running.settings.server}/screenshot`, { headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    expect(status).toBe(403);
  });
});

test('a desktop that is gone is an error and no crash', async () => {
  const settings = { server: 'http://127.0.0.1:1', starts: '/nonexistent', width: 10, height: 10 };
  const desktop = new Desktop({ ...settings, display: ':997' });
  const signal = AbortSignal.timeout(60_000);
  await expect(desktop.screenshot({}, signal)).rejects.toBeInstanceOf(DesktopError);
  await expect(desktop.move({ x: 1, y: 1 }, signal)).rejects.toBeInstanceOf(DesktopError);
  expect(await desktop.notices()).toEqual([]);
});
