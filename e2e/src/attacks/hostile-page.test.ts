import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:tls';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { attack } from '../../test/hostile-page/attack.ts';
import { startUnguarded } from '../../test/hostile-page/unguarded-server.ts';
import { shared } from '../../test/shared-service.ts';
import type { Account } from '../../test/sign-up.ts';
import { TestSandbox } from '../../test/test-sandbox.ts';

const PORT = 8000;
const DIRECTORY = '/tmp/hostile';

let account: Account;
let hostile: TestSandbox;
let other: TestSandbox;
let browser: Browser;

beforeAll(async () => {
  account = await shared.signUp();
  [hostile, other] = await Promise.all([serve(), serve()]);
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    // Other ways to accept the certificate leave it wrong, and a page with a wrong one has less rights.
    args: ['--no-sandbox', `--ignore-certificate-errors-spki-list=${await keyOfService()}`],
  });
});
afterAll(async () => {
  await browser?.close();
  await Promise.all([hostile?.delete(), other?.delete()]);
  await account?.client.close();
});

/** Begins the hostile server in a sandbox. */
async function serve(): Promise<TestSandbox> {
  const sandbox = await TestSandbox.create(account);
  await sandbox.run(`mkdir ${DIRECTORY}`);
  for (const name of ['server.cjs', 'page.html']) {
    const bytes = await readFile(new URL(`../../test/hostile-page/${name}`, import.meta.url));
    await account.client.sandboxes.files.write(sandbox.id, `${DIRECTORY}/${name}`, bytes);
  }
  await sandbox.run(
    `cd ${DIRECTORY}; nohup node server.cjs ${PORT} >log 2>&1 & until curl -sf 127.0.0.1:${PORT} >/dev/null; do sleep 0.2; done`,
  );
  return sandbox;
}

/** The hash of the service's public key, by which Chromium accepts its certificate. */
async function keyOfService(): Promise<string> {
  const { hostname, port } = new URL(shared.address.baseUrl);
  const socket = connect({
    host: hostname,
    port: Number(port),
    servername: hostname,
    ca: shared.ca,
  });
  await once(socket, 'secureConnect');
  const { publicKey } = new X509Certificate(socket.getPeerCertificate().raw);
  socket.destroy();
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('base64');
}

/** What the page and its server try. */
const ATTACKS = [
  'changes what browsers tell the API',
  'clears the storage of the API',
  'hears a broadcast of the API',
  'moves its opener',
  'reads IndexedDB',
  'reads a frame of its own server',
  'reads a frame of the API',
  'reads a frame of the other sandbox',
  'reads a window of the API',
  'reads a window of the other sandbox',
  'reads an answer of the API',
  'reads an answer of the other sandbox without its link',
  'reads its opener',
  'reads localStorage',
  'reads private files',
  'reads sessionStorage',
  'reads the cache',
  'reads the cookie store',
  'reads the cookies of the API',
  'reads the storage of its opener',
  'registers a service worker for itself',
  'registers a service worker for the API',
  'sends a message as the API',
  'sets a cookie for the API',
  'sets a cookie for the API by a header',
  'starts a shared worker of the origin of the API',
  'starts a worker of the origin of the API',
];

test('each attack succeeds where nothing guards the API', async () => {
  await using unguarded = await startUnguarded();
  const context = await browser.newContext();
  const at = (path: string) => unguarded.origin + path;
  const succeeded = await attack(context, {
    page: at('/docs'),
    hostile: at('/v1/sandboxes/a/ports/8000/'),
    other: at('/v1/sandboxes/b/ports/8000/~/'),
    unlinked: at('/v1/sandboxes/b/ports/8000/'),
  });
  await context.close();
  expect(succeeded.sort()).toEqual(ATTACKS);
});

test('a hostile page of a port reaches nothing of the API or of another sandbox', async () => {
  const { sandboxes } = account.client;
  const { baseUrl } = shared.address;
  const context = await browser.newContext();
  const linkTo = async ({ id }: TestSandbox) => (await sandboxes.link(id, { port: PORT })).url;
  const succeeded = await attack(context, {
    page: `${baseUrl}/docs`,
    hostile: await linkTo(hostile),
    other: await linkTo(other),
    unlinked: `${baseUrl}/v1/sandboxes/${other.id}/ports/${PORT}/`,
  });
  await context.close();
  expect(succeeded).toEqual([]);
  const received = await hostile.run(`cat ${DIRECTORY}/log`);
  expect(received).toContain('planted=by-header');
  expect(received).not.toContain('secret');
});
