import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { SvcError } from '@svc/sdk';
import { expect, test, vi } from 'vitest';
import { startSvc } from '../../test/run-svc.ts';
import { awaitCreation } from './creation.ts';

// Every command is a separate process, which takes seconds to start on a loaded machine.
vi.setConfig({ testTimeout: 120_000 });

test.each([
  ['sandbox', 'create'],
  ['session', 'start'],
])('an interrupted svc %s %s says how to find what may be created', async (kind, command) => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const environment = { SVC_BASE_URL: `http://127.0.0.1:${port}`, SVC_API_KEY: 'key' };
  const child = startSvc(environment, [kind, command]);
  const errors = text(child.stderr);
  await once(server, 'request');
  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([130, null]);
  expect(await errors).toContain(`svc ${kind} list`);
  server.close();
});

test('a creation without an answer in time does so too; other failures are left as they are', async () => {
  const failing = (code: string) =>
    awaitCreation('session', Promise.reject(new SvcError({ code, detail: 'No.' })));
  await expect(failing('timeout')).rejects.toMatchObject({
    code: 'creation_unfinished',
    next: expect.stringContaining('svc session list'),
    exitCode: 1,
  });
  await expect(failing('no_capacity')).rejects.toMatchObject({ code: 'no_capacity' });
});
