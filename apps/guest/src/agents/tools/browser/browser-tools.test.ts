import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { BROWSER_TOOLS } from '@svc/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { RunningBrowser } from '../../../../test/browser/running-browser.ts';
import { templateTools } from '../template-tools.ts';
import type { ToolOutcome } from '../tool.ts';

const PAGES: Record<string, string> = {
  '/': `<title>Order</title><h1>Order</h1><form method="post" action="/sent">
    <label>Name <input name="name" value="nobody"></label>
    <label>Size <select name="size"><option value="s">Small</option><option value="l">Large</option></select></label>
    <label><input type="checkbox" name="gift"> Gift</label><button>Send</button></form>
    <a href="/other" target="_blank">Elsewhere</a> <a href="/file">The file</a>
    <button onclick="alert('careful')">Warn</button> <p hidden>not shown</p>`,
  '/other': '<title>Other</title><p>Another page</p>',
};

let site: Server;
let origin: string;
let received: string[];
/** A download without an end. `ended` settles when the browser has ended it. */
let endless: { readonly begin: () => void; readonly ended: Promise<unknown> } | undefined;
let directory: string;
let browser: RunningBrowser;
let ended: AbortController;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-browser-tools-'));
  site = createServer(async (request, response) => {
    if (request.method === 'POST') received.push(await text(request));
    if (request.url === '/file') {
      response.setHeader('content-disposition', 'attachment; filename="data.bin"');
      response.end(Buffer.alloc(70_000, 7));
      return;
    }
    if (request.url === '/endless' || request.url === '/late') {
      const begin = () => {
        response.setHeader('content-disposition', 'attachment; filename="endless.bin"');
        response.write(Buffer.alloc(100_000));
      };
      endless = { begin, ended: once(response, 'close') };
      if (request.url === '/endless') begin();
      return;
    }
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(PAGES[request.url ?? ''] ?? '<title>Thanks</title><p>Thank you</p>');
  });
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  browser = await RunningBrowser.start();
});
afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  site.closeAllConnections();
  site.close();
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
});
beforeEach(() => {
  received = [];
  endless = undefined;
  ended = new AbortController();
});
afterEach(() => ended.abort());

/** The tools of one agent. */
function openTools() {
  const env = { PATH: process.env.PATH ?? '', HOME: directory };
  const context = {
    ...{ home: directory, workingDirectory: directory, env: () => env, signal: ended.signal },
  };
  const tools = templateTools(context, 30_000, { browser: browser.address });
  expect(tools.map(({ name }) => name)).toEqual(BROWSER_TOOLS);
  return async (name: string, input = {}, signal = ended.signal): Promise<ToolOutcome> => {
    const tool = tools.find((candidate) => candidate.name === `browser_${name}`);
    if (tool === undefined) throw new Error(`no tool ${name}`);
    try {
      return await tool.run(input, signal);
    } catch (error) {
      return { text: error instanceof Error ? error.message : String(error), isError: true };
    }
  };
}

/** The reference of the element whose line of a snapshot begins as given. */
function refOf(outcome: ToolOutcome, beginning: string): string {
  const line = outcome.text.split('\n').find((one) => one.trim().startsWith(`- ${beginning}`));
  return /\[ref=(\w+)\]/.exec(line ?? '')?.[1] ?? `none for ${beginning} in ${outcome.text}`;
}

describe('the tools of the browser', () => {
  test('fill and send a form', async () => {
    const use = openTools();
    const page = await use('navigate', { url: `${origin}/` });
    expect(page.text).toContain('- heading "Order" [level=1]');
    expect(page.text).toContain('Page: Order');
    const filled = await use('type', { ref: refOf(page, 'textbox "Name"'), text: 'Ada Ünal' });
    expect(filled.text).toMatch(/textbox "Name" .*: Ada Ünal/);
    await use('type', { ref: refOf(page, 'combobox "Size"'), text: 'Large' });
    await use('click', { ref: refOf(page, 'checkbox "Gift"') });
    const sent = await use('click', { ref: refOf(page, 'button "Send"') });
    expect(sent).toMatchObject({ isError: false });
    expect(sent.text).toContain(`URL: ${origin}/sent`);
    expect(received).toEqual(['name=Ada+%C3%9Cnal&size=l&gift=on']);
    expect((await use('text')).text).toContain('Thank you');
  });

  test('submit with Enter, and empty a field', async () => {
    const use = openTools();
    const page = await use('navigate', { url: `${origin}/` });
    const ref = refOf(page, 'textbox "Name"');
    expect((await use('type', { ref, text: '' })).text).not.toContain('nobody');
    await use('type', { ref, text: 'Bo', submit: true });
    expect(received).toEqual(['name=Bo&size=s']);
  });

  test('refuse elements of an earlier page, and what is no field', async () => {
    const use = openTools();
    const page = await use('navigate', { url: `${origin}/` });
    const ref = refOf(page, 'button "Send"');
    expect(await use('type', { ref, text: 'x' })).toMatchObject({ isError: true });
    await use('navigate', { url: `${origin}/other` });
    const late = await use('click', { ref });
    expect(late).toMatchObject({ isError: true });
    expect(late.text).toContain('take a new snapshot');
    expect(received).toEqual([]);
  });

  test('follow a link to a new page, and report dialogs', async () => {
    const use = openTools();
    const page = await use('navigate', { url: `${origin}/` });
    const warned = await use('click', { ref: refOf(page, 'button "Warn"') });
    expect(warned.text).toContain('dialog, which was dismissed: "careful"');
    const other = await use('click', { ref: refOf(page, 'link "Elsewhere"') });
    expect(other.text).toContain('opened another one');
    expect(other.text).toContain('Another page');
  });

  test('show only what is visible as text', async () => {
    const use = openTools();
    await use('navigate', { url: `${origin}/` });
    const { text: shown } = await use('text');
    expect(shown).toContain('Elsewhere');
    expect(shown).not.toContain('not shown');
  });

  test('save pictures and downloads', async () => {
    const use = openTools();
    const page = await use('navigate', { url: `${origin}/` });
    expect(await use('take_screenshot', { path: 'shots/one.png' })).toMatchObject({
      isError: false,
    });
    const picture = await readFile(join(directory, 'shots/one.png'));
    expect(picture.subarray(1, 4).toString()).toBe('PNG');
    const clicked = await use('download', { ref: refOf(page, 'link "The file"') });
    expect(clicked).toMatchObject({ isError: false });
    expect(await readFile(join(directory, 'data.bin'))).toEqual(Buffer.alloc(70_000, 7));
    const linked = await use('download', { url: `${origin}/file`, directory: 'more' });
    expect(linked.text).toContain('Saved 70000 bytes');
    expect((await readFile(join(directory, 'more/data.bin'))).byteLength).toBe(70_000);
  });

  test('end a download that is interrupted', async () => {
    const use = openTools();
    const interrupt = new AbortController();
    const running = use('download', { url: `${origin}/endless` }, interrupt.signal);
    await expect.poll(() => endless !== undefined).toBe(true);
    await expect.poll(async () => (await readdir(directory)).join()).toContain('.crdownload');
    interrupt.abort();
    expect(await running).toMatchObject({ isError: true });
    await endless?.ended;
    expect(await use('navigate', { url: `${origin}/other` })).toMatchObject({ isError: false });
  });

  test('end a download that begins only after it was interrupted', async () => {
    const use = openTools();
    const interrupt = new AbortController();
    const running = use('download', { url: `${origin}/late` }, interrupt.signal);
    await expect.poll(() => endless !== undefined).toBe(true);
    interrupt.abort();
    expect(await running).toMatchObject({ isError: true });
    endless?.begin();
    await endless?.ended;
    const { text: saved } = await use('download', { url: `${origin}/file` });
    expect(saved).toContain('Saved 70000 bytes');
  });

  test('work one after another', async () => {
    const use = openTools();
    const [page, shown] = await Promise.all([
      use('navigate', { url: `${origin}/` }),
      use('navigate', { url: `${origin}/other` }),
    ]);
    expect(page.text).toContain('Page: Order');
    expect(shown.text).toContain('Page: Other');
  });

  test('say why a page cannot be opened, and that none is', async () => {
    const use = openTools();
    expect((await use('snapshot')).text).toContain('No page is open');
    const refused = await use('navigate', { url: 'http://127.0.0.1:9/' });
    expect(refused).toMatchObject({ isError: true });
    expect(refused.text).toContain('ERR_');
  });

  test('tell the agent that the browser crashed, and work with the next one', async () => {
    const use = openTools();
    await use('navigate', { url: `${origin}/` });
    await browser.crash();
    const after = await use('snapshot');
    expect(after).toMatchObject({ isError: true });
    expect(after.text).toContain('The browser had crashed and was started again');
    expect(await use('navigate', { url: `${origin}/other` })).toMatchObject({ isError: false });
  });

  test('tell the agent that a page crashed', async () => {
    const use = openTools();
    await use('navigate', { url: `${origin}/` });
    await browser.crashPages();
    await expect.poll(async () => (await use('text')).text).toContain('The page had crashed');
    expect(await use('navigate', { url: `${origin}/other` })).toMatchObject({ isError: false });
  });
});
