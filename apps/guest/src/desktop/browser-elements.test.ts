import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { RunningDesktop } from '../../test/desktop/running-desktop.ts';
import { Desktop, type UiElement } from './index.ts';

const WAIT = { timeout: 60_000, interval: 100 };

/** The last element tries to stand in for the functions that list the page. */
const FORM = `<!doctype html><title>Form</title><style>* { margin: 0 }</style>
  <div style="height: 200px"><label>Name <input autofocus></label> <button id="save" onclick="fetch('/saved')">Save</button></div>
  <iframe style="margin: 20px 100px; height: 100px" srcdoc="<button onclick=&quot;fetch('/inner')&quot;>Inner</button>"></iframe>
  <p><button onclick="alert('Are you sure?')">Ask</button></p>
  <p style="margin-top: 2000px"><button>Far away</button></p><form id="svcElements"><input name="list"></form>`;
const OTHER = '<!doctype html><title>Other</title><button>Elsewhere</button>';

let running: RunningDesktop;
let desktop: Desktop;
let site: Server;
let port: number;
let signal: AbortSignal;
const requested: (string | undefined)[] = [];

beforeAll(async () => {
  site = createServer((request, response) => {
    requested.push(request.url);
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(request.url === '/form' ? FORM : OTHER);
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  port = (site.address() as AddressInfo).port;
  running = await RunningDesktop.start();
  desktop = new Desktop(running.settings);
});
afterAll(async () => {
  await running?.close();
  site?.closeAllConnections();
  site?.close();
});
beforeEach(() => {
  signal = AbortSignal.timeout(170_000);
  requested.length = 0;
});

async function list() {
  return await desktop.elements(500, signal);
}

async function find(name: string): Promise<UiElement | undefined> {
  const { elements } = await list();
  return elements.find((one) => one.name === name && one.role !== 'window');
}

async function wanted(name: string): Promise<UiElement> {
  const names = async () => (await list()).elements.map((element) => element.name);
  await expect.poll(names, WAIT).toContain(name);
  const element = await find(name);
  if (element === undefined) throw new Error(`the element ${name} is gone again`);
  return element;
}

/** Opens an address as an agent does. A click selects the old address only if the bar did not have the focus before. */
async function open(address: string): Promise<void> {
  const bar = await wanted('Address and search bar');
  await desktop.clickElement(bar.id, 'left', signal);
  const focused = async () => (await find('Address and search bar'))?.states ?? [];
  await expect.poll(focused, WAIT).toContain('focused');
  await desktop.press('ctrl+a', signal);
  await desktop.type(`${address}\n`, signal);
}

const click = (element: UiElement) => desktop.clickElement(element.id, 'left', signal);

test('a program that hangs leaves the list incomplete, and its elements are not gone', async () => {
  const field = await wanted('Full name');
  running.signalForm('SIGSTOP');
  try {
    expect((await list()).truncated).toBe(true);
    await expect(click(field)).rejects.toThrow('does not answer');
  } finally {
    running.signalForm('SIGCONT');
  }
  await expect.poll(async () => (await list()).truncated, WAIT).toBe(false);
  await click(field);
});

describe('a page in the browser', () => {
  beforeAll(() => running.openBrowser('about:blank'));
  beforeEach(async () => {
    await open(`http://127.0.0.1:${port}/form`);
    await wanted('Save');
  });

  test('is listed with the parts of the browser around it, and clicked where it is', async () => {
    expect(await wanted('Name')).toMatchObject({ role: 'textbox', source: 'page', value: '' });
    const { elements } = await list();
    const inWindow = elements.filter(({ source }) => source === 'window').map(({ name }) => name);
    expect(inWindow).toEqual(expect.arrayContaining(['Reload', 'New Tab', 'Minimize']));
    expect(inWindow).not.toContain('Save');
    const save = await wanted('Save');
    await click(save);
    await expect.poll(() => requested, WAIT).toContain('/saved');
    expect((await wanted('Save')).id).toBe(save.id);
    await click(await wanted('Inner'));
    await expect.poll(() => requested, WAIT).toContain('/inner');
    expect(await find('Far away')).toBeUndefined();
  });

  test('keeps the id of an element that is scrolled away, and says why it cannot be clicked', async () => {
    const save = await wanted('Save');
    await desktop.scroll({ x: 600, y: 600 }, { dy: 30 }, signal);
    const far = await wanted('Far away');
    await expect(click(save)).rejects.toThrow('can be seen at the moment');
    await desktop.scroll({ x: 600, y: 600 }, { dy: -30 }, signal);
    await expect.poll(() => find('Far away'), WAIT).toBeUndefined();
    await expect(click(far)).rejects.toThrow('can be seen at the moment');
    await click(save);
    await expect.poll(() => requested, WAIT).toContain('/saved');
  });

  test('has no elements of an earlier page', async () => {
    const save = await wanted('Save');
    // Another site, whose page has another process.
    await open(`http://localhost:${port}/other`);
    await wanted('Elsewhere');
    await expect(click(save)).rejects.toThrow('is gone');
    await click(await wanted('Back'));
    await wanted('Save');
  });

  test('that shows a dialogue leaves the list incomplete, and its elements are not gone', async () => {
    const save = await wanted('Save');
    await click(await wanted('Ask'));
    const ok = await wanted('OK');
    const { elements, truncated } = await list();
    expect(truncated).toBe(true);
    expect(elements.map(({ name }) => name)).toContain('Are you sure?');
    await expect(click(save)).rejects.toThrow('does not answer');
    await click(ok);
    await expect.poll(async () => (await list()).truncated, WAIT).toBe(false);
    await click(save);
    await expect.poll(() => requested, WAIT).toContain('/saved');
  });

  test('in another tab is not listed', async () => {
    await desktop.press('ctrl+t', signal);
    await expect.poll(() => find('Save'), WAIT).toBeUndefined();
    await desktop.press('ctrl+w', signal);
    await wanted('Save');
  });
});
