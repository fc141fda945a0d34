import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { AGENTS, type Agent } from '@svc/contract';
import type { When } from '@svc/model-server';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { framesOf } from '../../test/sessions/session-client.ts';
import { SessionFixture } from '../../test/sessions/session-fixture.ts';
import { shared } from '../../test/shared-service.ts';
import { TestSandbox } from '../../test/test-sandbox.ts';

const VM_TEST_MS = 600_000;
const PLAYWRIGHT_MS = 120_000;
const SITE = 'http://127.0.0.1:8000';

/** A site with a form, which prints the forms and the cookies that it receives. */
const SERVER = `
const { createServer } = require('node:http');
const { appendFileSync } = require('node:fs');
const form = '<title>Order</title><form method="post" action="/sent"><label>Name <input name="name"></label>'
  + '<button>Send</button></form>';
createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const cookie = request.headers.cookie ?? '-';
    appendFileSync('/tmp/received', [request.method, request.url, cookie, Buffer.concat(parts)].join(' ') + '\\n');
    response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'visited=yes; Max-Age=9999' });
    response.end(request.method === 'POST' ? '<title>Thanks</title><p>Thank you</p>' : form);
  });
}).listen(8000, '127.0.0.1');
`;

/** What tells the requests of an agent from those of others, and how its model names the tools of the template. */
const AGENT_REQUESTS: Readonly<Record<Agent, { readonly when: When; readonly prefix: string }>> = {
  deictic: { when: { system: 'You are deictic' }, prefix: '' },
  'claude-code': { when: { system: 'Claude' }, prefix: 'mcp__svc__' },
  codex: { when: { path: '/responses' }, prefix: '' },
};

const FORM_TOOLS = AGENTS.flatMap((agent) => {
  const { when, prefix } = AGENT_REQUESTS[agent];
  const call = (name: string, input: object) => ({
    tool_calls: [{ name: `${prefix}browser_${name}`, arguments: input }],
  });
  const rules = [
    { when: { user: 'order' }, reply: call('navigate', { url: `${SITE}/` }) },
    {
      when: { tool: 'textbox "Name" [^\\n]*\\[ref=(\\w+)\\](?!: Ada)' },
      reply: call('type', { ref: '$1', text: 'Ada' }),
    },
    {
      when: { tool: ': Ada[^]*button "Send" [^\\n]*\\[ref=(\\w+)\\]' },
      reply: call('click', { ref: '$1' }),
    },
    {
      when: { tool: 'Thank you' },
      reply: call('take_screenshot', { path: '/tmp/thanks.png' }),
    },
    { when: { tool: 'Saved the picture' }, reply: { text: 'The order was sent.' } },
    { when: { user: 'look' }, reply: call('snapshot', {}) },
    { when: { tool: 'crashed' }, reply: { text: 'The browser had crashed.' } },
    { when: { tool: '([^]*)' }, reply: { text: 'Unexpected: $1' } },
  ];
  return rules.map((rule) => ({ ...rule, when: { ...rule.when, ...when } }));
});

let fixture: SessionFixture;
beforeAll(async () => {
  // Playwright has no option for a certificate authority.
  setDefaultCACertificates([...getCACertificates(), shared.ca]);
  fixture = await SessionFixture.start({ rules: FORM_TOOLS });
}, VM_TEST_MS);
afterAll(() => fixture?.end());

/** Starts the site in a sandbox. */
async function serve(vmId: string): Promise<void> {
  const { sandboxes } = fixture.account.client;
  await sandboxes.files.write(vmId, '/tmp/site.cjs', SERVER);
  const start =
    'nohup node /tmp/site.cjs >/tmp/site.log 2>&1 & until curl -s 127.0.0.1:8000 >/dev/null; do sleep 0.2; done; rm -f /tmp/received';
  expect(await sandboxes.exec(vmId, start)).toMatchObject({ exit_code: 0 });
}

const linesReceived = async (vmId: string) =>
  (await fixture.account.client.sandboxes.exec(vmId, 'cat /tmp/received')).stdout
    .trim()
    .split('\n');

test.each(AGENTS)(
  '%s fills and sends a form, and is told that the browser crashed',
  async (agent) => {
    const session = await fixture.create(agent, { template: 'browser' });
    const vmId = await fixture.sandboxOf(session);
    await serve(vmId);
    const client = await fixture.attach(session);
    const frames = await client.task('Please order', 'one');
    const names = framesOf(frames, 'tool_call').map(({ name }) => name);
    expect(names, client.summary()).toEqual([
      'browser_navigate',
      'browser_type',
      'browser_click',
      'browser_take_screenshot',
    ]);
    expect(await linesReceived(vmId)).toContain('POST /sent visited=yes name=Ada');
    const { sandboxes } = fixture.account.client;
    const { stdout: kind } = await sandboxes.exec(vmId, 'file -b /tmp/thanks.png');
    expect(kind).toMatch(/^PNG image data/);

    const { stdout: pid } = await sandboxes.exec(vmId, 'pgrep -o chromium-headle');
    await sandboxes.exec(vmId, `kill -KILL ${pid}`);
    const seen = await client.task('Please look', 'two');
    const [result] = framesOf(seen, 'tool_result');
    expect(result?.content).toContain('The browser had crashed and was started again');
    await expect
      .poll(async () => (await sandboxes.exec(vmId, 'curl -s 127.0.0.1:9222/json/version')).stdout)
      .toContain('HeadlessChrome');
    await fixture.sessions.delete(session.chat_session_id);
  },
  2 * VM_TEST_MS,
);

describe('two sandboxes', () => {
  let sandboxes: TestSandbox[];
  beforeAll(async () => {
    const create = () => TestSandbox.create(fixture.account, { template: 'browser' });
    sandboxes = [await create(), await create()];
  }, VM_TEST_MS);
  afterAll(async () => {
    for (const sandbox of sandboxes ?? []) await sandbox.delete();
  });

  /** Connects Playwright on this machine to the browser of a sandbox, by a link or by the API key. */
  async function connect({ id }: TestSandbox, by: 'link' | 'key') {
    const { client, apiKey } = fixture.account;
    const { url } = await client.sandboxes.link(id, { port: 9222 });
    const bare = `${shared.address.baseUrl}/v1/sandboxes/${id}/ports/9222`;
    return by === 'link'
      ? chromium.connectOverCDP(url, { timeout: PLAYWRIGHT_MS })
      : chromium.connectOverCDP(bare, {
          timeout: PLAYWRIGHT_MS,
          headers: { authorization: `Bearer ${apiKey}` },
        });
  }

  test('have no page of the warm-up in the pool, also when it is killed', {
    timeout: VM_TEST_MS,
  }, async () => {
    const [{ id }] = sandboxes as [TestSandbox];
    const { exit_code, output } = await fixture.account.client.sandboxes.exec(
      id,
      `page() { pgrep -f type=[r]enderer >/dev/null; }
      while page; do sleep 0.1; done
      /usr/lib/svc/browser-warm-up >/dev/null & warmUp=$!
      until page; do sleep 0.1; done
      kill -KILL $warmUp
      while page; do sleep 0.1; done`,
    );
    expect(exit_code, output).toBe(0);
  });

  test(
    'are driven by a Playwright outside, and share no cookie, cache, profile or random number',
    async () => {
      const seen: object[] = [];
      for (const [index, sandbox] of sandboxes.entries()) {
        await serve(sandbox.id);
        const browser = await connect(sandbox, index === 0 ? 'link' : 'key');
        const [context] = browser.contexts();
        const page = await (context ?? (await browser.newContext())).newPage();
        page.setDefaultTimeout(PLAYWRIGHT_MS);
        await page.goto(SITE);
        const random = await page.evaluate(() => [
          Math.random(),
          crypto.randomUUID(),
          localStorage.getItem('mark'),
        ]);
        await page.evaluate(() => localStorage.setItem('mark', 'kept'));
        await page.getByLabel('Name').fill(`Bo ${index}`);
        await page.getByRole('button', { name: 'Send' }).click();
        expect(await page.title()).toBe('Thanks');
        expect((await page.screenshot()).subarray(1, 4).toString()).toBe('PNG');
        await page.close();
        await browser.close();
        const received = await linesReceived(sandbox.id);
        expect(received[0]).toBe('GET / - ');
        expect(received).toContain(`POST /sent visited=yes name=Bo+${index}`);
        seen.push(random);
      }
      const [first, second] = seen as [unknown[], unknown[]];
      expect(first[2]).toBeNull();
      expect(second[2]).toBeNull();
      expect(first[0]).not.toBe(second[0]);
      expect(first[1]).not.toBe(second[1]);
    },
    VM_TEST_MS,
  );
});
