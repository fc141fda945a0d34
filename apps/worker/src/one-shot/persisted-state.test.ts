import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { ServiceError } from '@svc/contract';
import { createSelfSigned } from '@svc/service-kit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ONE_SHOT } from '../../test/placement.ts';
import { SessionLab } from '../../test/session-lab.ts';

let endpoint: Server;
let directory: string;
let url: string;
let lab: SessionLab;
const heard: { method: string; authorization: string; body: string }[] = [];
type Reply = [number, string];
let answer: (request: IncomingMessage) => Reply | Promise<Reply>;

beforeEach(async () => {
  heard.length = 0;
  answer = () => [404, ''];
  directory = await mkdtemp(join(tmpdir(), 'svc-persist-'));
  const egressCaFile = join(directory, 'ca.pem');
  const tls = await createSelfSigned({ commonName: 'p', names: ['localhost'], days: 1 });
  await writeFile(egressCaFile, tls.cert);
  endpoint = createServer(tls, async (request, response) => {
    const body = await text(request);
    const { method = '', headers } = request;
    heard.push({ method, authorization: headers.authorization ?? '', body });
    const [status, content] = await answer(request);
    response.writeHead(status).end(content);
  });
  const listening = Promise.withResolvers<void>();
  endpoint.listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  const { port } = endpoint.address() as AddressInfo;
  url = `https://localhost:${port}/state`;
  lab = await SessionLab.start({
    egress: { egressAllowHosts: [{ host: 'localhost', port }], egressCaFile },
    agentTimeouts: { finishMs: 15_000 },
  });
  lab.store.secrets = {
    llm: { api_key: 'k' },
    env: {},
    persistence_auth_header: 'Custom secret=42',
  };
});

afterEach(async () => {
  await lab[Symbol.asyncDispose]();
  endpoint.closeAllConnections();
  endpoint.close();
  await rm(directory, { recursive: true });
});

const start = () => lab.harness.create({ agent: { ...ONE_SHOT, persistence_url: url } });
const puts = () => heard.filter(({ method }) => method === 'PUT');

describe('the persistence endpoint of a one-shot agent', () => {
  it('is read at the start, and written after each turn and at the end', async () => {
    answer = ({ method }) =>
      method === 'GET' ? [200, JSON.stringify({ version: 1, state: 'earlier' })] : [204, ''];
    const { guest } = lab;
    const id = await start();
    expect(guest.setup).toMatchObject({ conversation: 'earlier' });
    guest.state('later');
    await expect.poll(() => puts()).toHaveLength(1);
    expect(puts()[0]).toMatchObject({ authorization: 'Custom secret=42' });
    expect(JSON.parse(puts()[0]?.body ?? '')).toEqual({
      version: 1,
      session_id: 'r1',
      vm_id: id,
      agent: 'codex',
      saved_at: expect.stringMatching(/^\d{4}-.*Z$/),
      state: 'later',
    });
    guest.conversation = 'last';
    await lab.harness.json('DELETE', `/sandboxes/${id}`);
    expect(JSON.parse(puts().at(-1)?.body ?? '')).toMatchObject({ state: 'last' });
    expect(JSON.stringify(guest.heard)).not.toContain('secret=42');
  });

  it('keeps its state when a new one is too large to start from', async () => {
    const { guest } = lab;
    await start();
    guest.state('x'.repeat(5 * 1024 * 1024));
    guest.state('small');
    await expect.poll(() => puts()).toHaveLength(1);
    expect(JSON.parse(puts()[0]?.body ?? '')).toMatchObject({ state: 'small' });
  });

  it('is retried when it fails', async () => {
    await start();
    let failures = 2;
    answer = () => {
      failures -= 1;
      return failures >= 0 ? [503, ''] : [200, ''];
    };
    lab.guest.state('x');
    await expect.poll(() => puts()).toHaveLength(3);
  });

  it('has a state before the guest may forget it', async () => {
    const { guest, harness } = lab;
    const id = await start();
    const accepted = Promise.withResolvers<Reply>();
    answer = () => accepted.promise;
    guest.frame({ type: 'text_delta', data: 'before' });
    guest.state('first');
    guest.state('second');
    guest.exited(0);
    // The exit comes after the states and does not wait for them.
    await expect
      .poll(async () => (await harness.json('GET', `/sandboxes/${id}`)).body)
      .toMatchObject({ agent_exit_code: 0 });
    await expect.poll(() => puts()).toHaveLength(1);
    expect(guest.unacknowledged).toBe(3);
    accepted.resolve([204, '']);
    await guest.drained();
    expect(JSON.parse(puts().at(-1)?.body ?? '')).toMatchObject({ state: 'second' });
  });

  it('gets a state that a worker received but could not send from the next worker', async () => {
    await start();
    answer = () => [503, ''];
    lab.guest.state('kept');
    await expect.poll(() => puts().length).toBeGreaterThan(0);
    await lab.restart(() => {
      heard.length = 0;
      answer = () => [204, ''];
    });
    await expect.poll(() => puts()).toHaveLength(1);
    expect(JSON.parse(puts()[0]?.body ?? '')).toMatchObject({ state: 'kept' });
    await lab.guest.drained();
  });

  describe('after a restart of the worker', () => {
    /** Starts the next worker while its control plane does not answer; the agent has a state and exits. */
    async function restartWithoutSecrets(): Promise<string> {
      const id = await start();
      answer = () => [503, ''];
      lab.guest.state('kept');
      await expect.poll(() => puts().length).toBeGreaterThan(0);
      await lab.restart(() => {
        heard.length = 0;
        lab.store.secretsFailure = new ServiceError('database_unavailable');
        const { persistence_auth_header: header } = lab.store.secrets;
        answer = ({ headers }) => (headers.authorization === header ? [204, ''] : [401, '']);
      });
      lab.guest.exited(0);
      // The exit is handled behind the state.
      await expect
        .poll(async () => (await lab.harness.json('GET', `/sandboxes/${id}`)).body)
        .toMatchObject({ agent_exit_code: 0 });
      expect(heard).toEqual([]);
      return id;
    }

    it.each([
      ['with its header', 'Custom secret=42'],
      ['without a header', undefined],
    ])('is sent nothing until its credentials are known: %s', async (_what, header) => {
      const env = { llm: { api_key: 'k' }, env: {} };
      lab.store.secrets = header === undefined ? env : { ...env, persistence_auth_header: header };
      await restartWithoutSecrets();
      lab.store.secretsFailure = undefined;
      await lab.guest.drained();
      expect(puts()).toEqual([expect.objectContaining({ authorization: header ?? '' })]);
      expect(JSON.parse(puts()[0]?.body ?? '')).toMatchObject({ state: 'kept' });
    });

    it('gets the last state of a sandbox that ends before its credentials are known', async () => {
      const { guest } = lab;
      const id = await restartWithoutSecrets();
      guest.conversation = 'last';
      const ended = lab.harness.json('DELETE', `/sandboxes/${id}`);
      await expect.poll(() => guest.all('save')).toHaveLength(1);
      const asked = lab.store.secretsAsked;
      await expect.poll(() => lab.store.secretsAsked).toBeGreaterThan(asked);
      lab.store.secretsFailure = undefined;
      expect((await ended).status).toBe(200);
      expect(puts().at(-1)).toMatchObject({ authorization: 'Custom secret=42' });
      expect(JSON.parse(puts().at(-1)?.body ?? '')).toMatchObject({ state: 'last' });
    });

    it('does not hold up the end of a sandbox whose credentials stay unknown', async () => {
      const id = await restartWithoutSecrets();
      expect((await lab.harness.json('DELETE', `/sandboxes/${id}`)).status).toBe(200);
      expect(heard).toEqual([]);
    });
  });

  it('that refuses a state for good does not hold up the guest', async () => {
    await start();
    answer = () => [401, ''];
    lab.guest.state('refused');
    await lab.guest.drained();
    expect(puts()).toHaveLength(1);
  });

  it.each([
    ['refuses', () => [401, ''] as [number, string]],
    ['answers with another version', () => [200, '{"version":2}'] as [number, string]],
    ['answers with text other than JSON', () => [200, 'hello'] as [number, string]],
    [
      'answers with more values than any state has',
      () => [200, JSON.stringify({ version: 1, state: 'x', more: Array(70_000).fill(0) })] as Reply,
    ],
    ['answers with too large a state', () => [200, 'x'.repeat(5_000_000)] as [number, string]],
    ['redirects', () => [302, ''] as [number, string]],
  ])('that %s fails the create, so that nothing is overwritten', async (_what, with_) => {
    answer = with_;
    await expect(start()).rejects.toThrow('500');
    // Each of them is final.
    expect(heard).toEqual([expect.objectContaining({ method: 'GET' })]);
  });

  it('is refused at an address outside the egress rules', async () => {
    const agent = { ...ONE_SHOT, persistence_url: 'https://127.0.0.1:9/' };
    await expect(lab.harness.create({ agent })).rejects.toThrow('500');
    expect(heard).toEqual([]);
  });
});
