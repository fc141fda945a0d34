import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { PlacedAgent } from '@svc/contract';
import { createSelfSigned } from '@svc/service-kit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Harness } from '../../test/harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { ScriptedGuest } from '../../test/scripted-guest.ts';
import { until } from '../../test/until.ts';
import { AgentLogs } from '../logs/agent-logs.ts';

const ONE_SHOT: PlacedAgent = {
  kind: 'codex',
  mode: 'one_shot',
  vendor: 'openai',
  model: 'gpt-test',
  wire_version: 2,
  task: 'do it',
  resume_id: 'r1',
};
const LOG = '/var/log/svc/agent.log';

let guest: ScriptedGuest;
let harness: Harness;

beforeEach(async () => {
  guest = await ScriptedGuest.listen();
  harness = await Harness.start({ guest, sessionTimes: { saveMs: 1_000 } });
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
  await guest[Symbol.asyncDispose]();
});

async function recordOf(id: string, from = harness) {
  return (await from.json('GET', `/sandboxes/${id}`)).body;
}

describe('a one-shot agent', () => {
  it('is given its task and its environment, without what is the gateway’s', async () => {
    const id = await harness.create({
      agent: ONE_SHOT,
      env_vars: { A: '1', LLM_BASE_URL: 'https://x' },
    });
    expect(guest.setup).toMatchObject({
      mode: 'one_shot',
      agent: 'codex',
      task: 'do it',
      resumeId: 'r1',
      gateway: 'http://172.30.0.1:7200/openai',
      env: { A: '1', GREETING: 'hello' },
    });
    expect(guest.setup?.env).not.toHaveProperty('LLM_BASE_URL');
    expect(await recordOf(id)).toMatchObject({ agent_status: 'running' });
    expect(await recordOf(id)).not.toHaveProperty('agent_exit_code');
  });

  it.each([
    [0, 'completed'],
    [3, 'failed'],
  ])('that ends with %i has %s, for a restarted worker too', async (code, status) => {
    const id = await harness.create({ agent: ONE_SHOT });
    guest.frame({ type: 'text_delta', data: 'nobody hears this' });
    guest.exited(code);
    guest.exited(99);
    const ended = { agent_status: status, agent_exit_code: code, state: 'running' };
    await until(async () => expect(await recordOf(id)).toMatchObject(ended));
    await guest.drained();
    await until(() =>
      expect(harness.controlPlane.events.at(-1)).toMatchObject({
        vm_id: id,
        agent_exit_code: code,
      }),
    );
    await using second = await Harness.start({ host: new MemoryHost(harness.host.live) });
    expect(await recordOf(id, second)).toMatchObject(ended);
  });

  it('that is lost has failed', async () => {
    await using mortal = await ScriptedGuest.listen();
    await using quick = await Harness.start({ guest: mortal, sessionTimes: { lineLostMs: 300 } });
    const id = await quick.create({ agent: ONE_SHOT });
    mortal.open = false;
    mortal.cut();
    await until(async () =>
      expect(await recordOf(id, quick)).toMatchObject({
        agent_status: 'failed',
        agent_exit_code: 137,
        state: 'running',
      }),
    );
  });
});

describe('its log', () => {
  const logs = (id: string) => harness.json('GET', `/sandboxes/${id}/logs?lines=1`);

  it('can be read while it runs, while it is paused, and after the sandbox has ended', async () => {
    const id = await harness.create({ agent: ONE_SHOT });
    expect(await logs(id)).toMatchObject({ body: { content: '', total_bytes: 0 } });
    const vm = harness.host.vmOf(id);
    vm.files.set(LOG, Buffer.from('one\ntwo\n'));
    expect(await logs(id)).toEqual({
      status: 200,
      body: { content: 'two\n', truncated: true, total_bytes: 8 },
    });
    vm.files.set(LOG, Buffer.from('one\ntwo\nthree\n'));
    await harness.json('POST', `/sandboxes/${id}/pause`);
    expect(await logs(id)).toMatchObject({ body: { content: 'three\n' } });
    expect(vm.paused).toBe(true);
    await harness.json('POST', `/sandboxes/${id}/resume`);
    vm.files.set(LOG, Buffer.from('one\ntwo\nthree\nfour\n'));
    await harness.json('DELETE', `/sandboxes/${id}`);
    expect(await logs(id)).toMatchObject({ body: { content: 'four\n', total_bytes: 19 } });
  });

  it('is there when its end is known, though the VM dies then', async () => {
    const id = await harness.create({ agent: ONE_SHOT });
    const vm = harness.host.vmOf(id);
    vm.files.set(LOG, Buffer.from('the end\n'));
    guest.exited(1);
    await until(async () => expect(await recordOf(id)).toMatchObject({ agent_exit_code: 1 }));
    vm.die();
    await until(async () => expect(await recordOf(id)).toMatchObject({ state: 'destroyed' }));
    expect(await logs(id)).toMatchObject({ body: { content: 'the end\n' } });
  });

  it('that is larger than any log is not taken', async () => {
    const id = await harness.create({ agent: ONE_SHOT });
    harness.host.vmOf(id).files.set(LOG, Buffer.alloc(40 * 1024 * 1024, 'x'));
    expect(await logs(id)).toMatchObject({ status: 200, body: { total_bytes: 0 } });
    const directory = join(harness.dataDir, 'logs', 'agents');
    expect(await readdir(directory)).toEqual([]);
  });

  it('is deleted when the record is forgotten', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'svc-logs-'));
    const copies = new AgentLogs(directory);
    for (const id of ['vm_old', 'vm_known', 'vm_new']) {
      await writeFile(join(directory, `${id}.stderr.log`), 'x');
    }
    const old = new Date(Date.now() - 901_000);
    for (const id of ['vm_old', 'vm_known']) {
      await utimes(join(directory, `${id}.stderr.log`), old, old);
    }
    await copies.sweep(Date.now(), (id) => id === 'vm_known');
    expect((await readdir(directory)).sort()).toEqual(['vm_known.stderr.log', 'vm_new.stderr.log']);
    await rm(directory, { recursive: true });
  });
});

describe('its persistence endpoint', () => {
  let endpoint: Server;
  let caFile: string;
  let directory: string;
  let url: string;
  let worker: Harness;
  const heard: { method: string; authorization: string; body: string }[] = [];
  let answer: (request: IncomingMessage) => [number, string];

  beforeEach(async () => {
    heard.length = 0;
    answer = () => [404, ''];
    directory = await mkdtemp(join(tmpdir(), 'svc-persist-'));
    caFile = join(directory, 'ca.pem');
    const tls = await createSelfSigned({ commonName: 'p', names: ['localhost'], days: 1 });
    await writeFile(caFile, tls.cert);
    endpoint = createServer(tls, async (request, response) => {
      const body = await text(request);
      const { method = '', headers } = request;
      heard.push({ method, authorization: headers.authorization ?? '', body });
      const [status, content] = answer(request);
      response.writeHead(status).end(content);
    });
    const listening = Promise.withResolvers<void>();
    endpoint.listen(0, '127.0.0.1', listening.resolve);
    await listening.promise;
    const { port } = endpoint.address() as AddressInfo;
    url = `https://localhost:${port}/state`;
    worker = await Harness.start({
      guest,
      egress: { egressAllowHosts: [{ host: 'localhost', port }], egressCaFile: caFile },
      sessionTimes: { saveMs: 2_000 },
    });
    worker.controlPlane.sessions.secrets = {
      llm: { api_key: 'k' },
      env: {},
      persistence_auth_header: 'Custom secret=42',
    };
  });

  afterEach(async () => {
    await worker[Symbol.asyncDispose]();
    endpoint.closeAllConnections();
    endpoint.close();
    await rm(directory, { recursive: true });
  });

  const start = () => worker.create({ agent: { ...ONE_SHOT, persistence_url: url } });
  const puts = () => heard.filter(({ method }) => method === 'PUT');

  it('is asked first, and told after each turn and at the end', async () => {
    answer = ({ method }) =>
      method === 'GET' ? [200, JSON.stringify({ version: 1, state: 'earlier' })] : [204, ''];
    const id = await start();
    expect(guest.setup).toMatchObject({ conversation: 'earlier' });
    guest.state('later');
    await until(() => expect(puts()).toHaveLength(1));
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
    await worker.json('DELETE', `/sandboxes/${id}`);
    expect(JSON.parse(puts().at(-1)?.body ?? '')).toMatchObject({ state: 'last' });
    expect(JSON.stringify(guest.heard)).not.toContain('secret=42');
  });

  it('is tried again when it fails', async () => {
    await start();
    let failures = 2;
    answer = () => {
      failures -= 1;
      return failures >= 0 ? [503, ''] : [200, ''];
    };
    guest.state('x');
    await until(() => expect(puts()).toHaveLength(3));
  });

  it.each([
    ['refuses', () => [401, ''] as [number, string]],
    ['has something else', () => [200, '{"version":2}'] as [number, string]],
    ['has no JSON', () => [200, 'hello'] as [number, string]],
    ['has more than there can be', () => [200, 'x'.repeat(5_000_000)] as [number, string]],
    ['sends elsewhere', () => [302, ''] as [number, string]],
  ])('that %s fails the create, so that nothing is overwritten', async (_what, with_) => {
    answer = with_;
    await expect(start()).rejects.toThrow('500');
    expect(puts()).toEqual([]);
  });

  it('may not be where the rules do not allow', async () => {
    const agent = { ...ONE_SHOT, persistence_url: 'https://127.0.0.1:9/' };
    await expect(worker.create({ agent })).rejects.toThrow('500');
    expect(heard).toEqual([]);
  });
});
