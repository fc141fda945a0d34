import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RunningDesktop } from '../../test/desktop/running-desktop.ts';
import { Desktop } from './index.ts';

const WAIT = { timeout: 60_000, interval: 50 };
/** A page that needs a second for each key. */
const BUSY = `<title>Busy</title><input aria-label="Field" autofocus>
  <script>
    onkeydown = () => { for (const end = performance.now() + 1000; performance.now() < end; ); };
  </script>`;

let running: RunningDesktop;
let desktop: Desktop;
let site: Server;
let origin: string;
const requested: (string | undefined)[] = [];

beforeAll(async () => {
  site = createServer((request, response) => {
    requested.push(request.url);
    response.setHeader('content-type', 'text/html');
    response.end(BUSY);
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  running = await RunningDesktop.start();
  desktop = new Desktop(running.settings);
});

afterAll(async () => {
  await running?.close();
  site.closeAllConnections();
  site.close();
});

test('what is typed after a combination for the browser does not reach a busy page', async () => {
  const signal = AbortSignal.timeout(150_000);
  await running.openBrowser(`${origin}/`);
  const field = async () => {
    const { elements } = await desktop.elements(500, signal);
    return elements.find(({ name, source }) => name === 'Field' && source === 'page');
  };
  await expect.poll(async () => (await field())?.states ?? [], WAIT).toContain('focused');
  for (const path of ['/first', '/second']) {
    await desktop.press('ctrl+l', signal);
    await desktop.type(`${origin}${path}\n`, signal);
    await expect.poll(() => requested, WAIT).toContain(path);
    await expect.poll(async () => (await field())?.value, WAIT).toBe('');
  }
});
