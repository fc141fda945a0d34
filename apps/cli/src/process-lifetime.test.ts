import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test, vi } from 'vitest';
import { startSvc } from '../test/run-svc.ts';

// Every command is a separate process, which takes seconds to start on a loaded machine.
vi.setConfig({ testTimeout: 120_000 });

const SANDBOX = 'vm_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b';

test.each([
  ['exec', ['sandbox', 'exec', SANDBOX, '--', 'yes']],
  ['a download', ['sandbox', 'cp', `${SANDBOX}:/dev/zero`, '-']],
])('%s whose output nobody reads any more ends quietly, as with SIGPIPE', async (_, args) => {
  const left = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    request.resume();
    const isExec = request.method === 'POST';
    const event = { data: 'y\n'.repeat(1_000) };
    const chunk = isExec ? `event: stdout\ndata: ${JSON.stringify(event)}\n\n` : 'y'.repeat(1_000);
    response.setHeader('content-type', isExec ? 'text/event-stream' : 'application/octet-stream');
    const more = () => {
      while (response.write(chunk));
    };
    response.on('drain', more).on('close', left.resolve);
    more();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const environment = { SVC_BASE_URL: `http://127.0.0.1:${port}`, SVC_API_KEY: 'key' };
  const child = startSvc(environment, args);
  const errors = text(child.stderr);
  child.stdout.once('data', () => child.stdout.destroy());
  expect([...(await once(child, 'exit')), await errors]).toEqual([141, null, '']);
  // The service kills a command whose caller has left.
  await left.promise;
  server.close();
});

test('a demo whose output nobody reads any more leaves nothing behind', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'svc-lifetime-'));
  const environment = {
    TMPDIR: join(directory, 'tmp'),
    HOME: directory,
    // Its start fails, once PostgreSQL runs.
    SVC_IMAGE_DIR: '/dev/null/images',
  };
  await mkdir(environment.TMPDIR);
  const child = startSvc(environment, ['demo']);
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
    if (output.includes('temporary service')) child.stdout.destroy();
  });
  const errors = text(child.stderr);
  await once(child, 'exit');
  expect(await readdir(environment.TMPDIR), await errors).toEqual([]);
  await rm(directory, { recursive: true });
});
