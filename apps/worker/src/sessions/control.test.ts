import { environmentBytes, LIMITS } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { describe, expect, it } from 'vitest';
import type { ScriptedGuest } from '../../test/scripted-guest.ts';
import { useSessionLab } from '../../test/session-lab.ts';
import { SessionSocket } from '../../test/session-socket.ts';

const lab = useSessionLab();

describe('cancel', () => {
  it('reaches every client, is stored, and reports whether any client received it', async () => {
    const { harness } = lab();
    const { session, vmId } = await harness.startSession();
    expect(await harness.json('POST', `/sandboxes/${vmId}/cancel`)).toMatchObject({
      body: { cancelled: false },
    });
    const client = await lab().attach(session, { afterSeq: 0 });
    expect(
      await harness.json('POST', `/sandboxes/${vmId}/cancel`, { reason: 'admin_action' }),
    ).toMatchObject({ body: { cancelled: true, reason: 'admin_action' } });
    await client.next(({ seq }) => seq === 2);
    expect(client.frames.slice(1)).toEqual([
      { type: 'system', event: 'cancel', reason: 'user_request', seq: 1, ts: expect.any(String) },
      { type: 'system', event: 'cancel', reason: 'admin_action', seq: 2, ts: expect.any(String) },
    ]);
    expect(harness.host.live).toHaveLength(1);
  });
});

describe('a config update', () => {
  it('applies the new values, and names the changed keys to clients', async () => {
    const { vmId, client } = await lab().startAttached();
    lab().store.secrets = {
      llm: { api_key: 'sk-the-new-key' },
      env: { GREETING: 'good day', LLM_API_KEY: 'never' },
    };
    const keys = ['GREETING', 'LLM_API_KEY'];
    const answer = await lab().harness.call('POST', `/sandboxes/${vmId}/config-update`, {
      json: { bundle: 'llm', version: 2, keys },
    });
    expect(answer.statusCode).toBe(204);
    expect(await client.next(({ event }) => event === 'config_update')).toMatchObject({
      keys,
      seq: 1,
    });
    await expect
      .poll(() => lab().guest.all('env').at(-1))
      .toMatchObject({ type: 'env', env: { GREETING: 'good day' } });
    expect(JSON.stringify([lab().guest.heard, client.frames])).not.toContain('sk-the');
  });

  it('is shown once for each rotation, also by the next worker process', async () => {
    const { session, vmId } = await lab().harness.startSession();
    const update = async (bundle: string, version: number) => {
      const json = { bundle, version, keys: [`${bundle.toUpperCase()}_${version}`] };
      const path = `/sandboxes/${vmId}/config-update`;
      expect((await lab().harness.call('POST', path, { json })).statusCode).toBe(204);
    };
    await update('a', 7);
    await update('a', 7);
    await update('b', 3);
    await update('a', 6);
    await lab().restart();
    await update('a', 7);
    await update('b', 3);
    await update('b', 4);
    const client = await lab().attach(session, { afterSeq: 0 });
    await client.next(({ version }) => version === 4);
    expect(client.frames.slice(1)).toMatchObject([
      { event: 'config_update', bundle: 'a', version: 7, keys: ['A_7'], seq: 1 },
      { event: 'config_update', bundle: 'b', version: 3, keys: ['B_3'], seq: 2 },
      { event: 'config_update', bundle: 'b', version: 4, keys: ['B_4'], seq: 3 },
    ]);
  });

  it('gives the guest its model and dialect, and shows the model to clients that attach', async () => {
    const { guest, store } = lab();
    const { session, vmId } = await lab().harness.startSession();
    store.secrets = { llm: { api_key: 'sk-2', model: 'claude-2' }, env: {} };
    const path = `/sandboxes/${vmId}/config-update`;
    const json = { bundle: 'llm', version: 2, keys: ['LLM_MODEL'] };
    await lab().harness.call('POST', path, { json });
    const gateway = expect.stringMatching(/^http:.*\/anthropic$/);
    await expect
      .poll(() => guest.all('env').at(-1))
      .toEqual({
        type: 'env',
        env: {},
        llm: { model: 'claude-2', dialect: 'anthropic', gateway },
      });
    const client = await lab().attach(session);
    expect(client.frames[0]).toMatchObject({ type: 'ready', model: 'claude-2' });
  });

  it('tells clients why rotated values cannot be used', async () => {
    const { vmId, client } = await lab().startAttached();
    lab().store.secrets = {
      llm: { api_key: 'sk-2', model: 'claude-test', problem: 'It stays.' },
      env: {},
    };
    const json = { bundle: 'llm', version: 2, keys: ['LLM_MODEL'] };
    await lab().harness.call('POST', `/sandboxes/${vmId}/config-update`, { json });
    expect(await client.next(({ type }) => type === 'error')).toMatchObject({
      code: 'model_not_allowed',
      message: 'It stays.',
      seq: 2,
    });
  });

  it('leaves the environment as it is when the new values are too large for it, and says so', async () => {
    const { guest, store } = lab();
    const { vmId, client } = await lab().startAttached();
    const rotate = async (version: number, values: object) => {
      store.secrets = { llm: { api_key: 'sk-2', model: `claude-${version}` }, env: { ...values } };
      const json = { bundle: 'llm', version, keys: Object.keys(values) };
      const path = `/sandboxes/${vmId}/config-update`;
      expect((await lab().harness.call('POST', path, { json })).statusCode).toBe(204);
      await client.next((frame) => frame.version === version);
    };
    const size = LIMITS.sessionEnvBytes - environmentBytes({ A: '' });
    await rotate(2, { A: 'x'.repeat(size) });
    await expect.poll(() => guest.all('env').at(-1)?.env?.A).toHaveLength(size);
    await rotate(3, { A: 'x'.repeat(size + 1) });
    const refused = await client.next(({ type }) => type === 'error');
    expect(refused).toMatchObject({ code: 'secrets_too_large', seq: 3 });
    await expect.poll(() => guest.all('env').at(-1)?.llm?.model).toBe('claude-3');
    // What is sent again after a reconnect is what is in use.
    const before = guest.all('env').length;
    guest.cut();
    await expect.poll(() => guest.all('env').length).toBeGreaterThan(before);
    expect(guest.all('env').at(-1)?.env?.A).toHaveLength(size);
    await rotate(4, { A: 'fits' });
    await expect.poll(() => guest.all('env').at(-1)?.env).toEqual({ A: 'fits' });
  });

  it('gives a next worker process no values that are too large', async () => {
    const { guest, store } = lab();
    await lab().harness.startSession();
    store.secrets = {
      llm: { api_key: 'sk-2', model: 'claude-2' },
      env: { A: 'x'.repeat(LIMITS.sessionEnvBytes) },
    };
    await lab().restart();
    await expect.poll(() => guest.all('env').at(-1)?.llm?.model).toBe('claude-2');
    expect(guest.all('env').at(-1)).not.toHaveProperty('env');
  });

  it('is refused while the agent starts, so that it is sent again', async () => {
    const { harness, guest } = lab();
    const configuring = Promise.withResolvers<() => void>();
    guest.onConfigure = (socket) =>
      configuring.resolve(() => socket.write(`${JSON.stringify({ type: 'configured' })}\n`));
    const starting = harness.startSession();
    const configured = await configuring.promise;
    const { body: list } = await harness.json<{ sandboxes: { vm_id: string }[] }>(
      'GET',
      '/sandboxes',
    );
    const path = `/sandboxes/${list.sandboxes[0]?.vm_id}/config-update`;
    const json = { bundle: 'llm', version: 2, keys: ['A'] };
    expect(await harness.json('POST', path, json)).toMatchObject({ status: 409 });
    configured();
    await starting;
    expect((await harness.call('POST', path, { json })).statusCode).toBe(204);
  });

  it('reaches a guest whose link is down once the link is up again', async () => {
    const { guest } = lab();
    const { vmId } = await lab().harness.startSession();
    guest.open = false;
    guest.cut();
    await lab().harness.call('POST', `/sandboxes/${vmId}/config-update`, {
      json: { bundle: 'llm', version: 2, keys: ['GREETING'] },
    });
    expect(guest.all('env')).toEqual([]);
    guest.open = true;
    await expect.poll(() => guest.all('env').length).toBeGreaterThan(0);
  });

  it('fails when the values cannot be fetched, and is refused for an unknown or destroyed sandbox', async () => {
    const { harness } = lab();
    const { vmId } = await harness.startSession();
    harness.controlPlane.broken = true;
    const json = { bundle: 'llm', version: 2, keys: ['GREETING'] };
    const failed = await harness.json('POST', `/sandboxes/${vmId}/config-update`, json);
    expect(failed.status).toBe(500);
    harness.controlPlane.broken = false;
    expect(await harness.json('POST', '/sandboxes/vm_none/config-update', json)).toMatchObject({
      status: 404,
    });
    await harness.json('DELETE', `/sandboxes/${vmId}`);
    expect(await harness.json('POST', `/sandboxes/${vmId}/config-update`, json)).toMatchObject({
      status: 409,
    });
  });
});

/** The commands of clients that have reached a guest. */
const commandsOf = (guest: ScriptedGuest) =>
  guest.all('client').map(({ frame }) => (frame.type === 'exec' ? frame.command : frame.type));

describe('a paused session', () => {
  it('resumes when a client attaches, and not before', async () => {
    const { harness } = lab();
    const { session, vmId } = await harness.startSession();
    await harness.json('POST', `/sandboxes/${vmId}/pause`);
    const client = await lab().attach(session);
    expect(harness.host.vmOf(vmId)).toMatchObject({ paused: false, resumes: 1 });
    client.send({ type: 'task', prompt: 'x' });
    await client.next(({ type }) => type === 'task_completed');
  });

  it('resumes for a frame of a client that was attached before, but not for a ping', async () => {
    const { harness, guest } = lab();
    const { vmId, client } = await lab().startAttached();
    await harness.json('POST', `/sandboxes/${vmId}/pause`);
    client.send({ type: 'ping' });
    await client.next(({ type }) => type === 'pong');
    const vm = harness.host.vmOf(vmId);
    expect(vm).toMatchObject({ paused: true, resumes: 0 });
    for (const command of ['a', 'b', 'c']) client.send({ type: 'exec', command });
    await expect.poll(() => commandsOf(guest)).toEqual(['a', 'b', 'c']);
    expect(vm).toMatchObject({ paused: false, resumes: 1 });
    expect(await harness.json('GET', `/sandboxes/${vmId}`)).toMatchObject({
      body: { state: 'running' },
    });
  });

  it('takes a bounded number of frames while it resumes, in order, also of a client that leaves', async () => {
    const { harness, guest } = lab();
    const { vmId, client } = await lab().startAttached();
    await harness.json('POST', `/sandboxes/${vmId}/pause`);
    const vm = harness.host.vmOf(vmId);
    const gate = Promise.withResolvers<void>();
    const resume = vm.resume.bind(vm);
    vm.resume = async (signal) => {
      await gate.promise;
      await resume(signal);
    };
    const sent = Array.from({ length: 300 }, (_, index) => `${index}`);
    for (const command of sent) client.send({ type: 'exec', command, id: command });
    const refused = () => client.frames.filter(({ code }) => code === 'busy').map(({ id }) => id);
    await expect.poll(refused).toEqual(sent.slice(256));
    await client.close();
    gate.resolve();
    await expect.poll(() => commandsOf(guest)).toEqual(sent.slice(0, 256));
    expect(vm.resumes).toBe(1);
  });

  it('answers the frames of attached clients with an error while it cannot be resumed', async () => {
    const { harness, guest } = lab();
    const { vmId, client } = await lab().startAttached();
    await harness.json('POST', `/sandboxes/${vmId}/pause`);
    const vm = harness.host.vmOf(vmId);
    vm.faults.resume = new MicrovmError('resume_failed', 'no');
    client.send({ type: 'exec', command: 'a', id: 'first' });
    expect(await client.next(({ type }) => type === 'error')).toMatchObject({
      code: 'busy',
      id: 'first',
    });
    vm.faults.resume = undefined;
    client.send({ type: 'exec', command: 'b' });
    await expect.poll(() => commandsOf(guest)).toEqual(['b']);
  });

  it('refuses a client with a server error when the sandbox cannot be resumed', async () => {
    const { harness } = lab();
    const { session, vmId } = await harness.startSession();
    await harness.json('POST', `/sandboxes/${vmId}/pause`);
    const vm = harness.host.vmOf(vmId);
    vm.faults.resume = new MicrovmError('resume_failed', 'no');
    expect((await SessionSocket.refusal(harness, session)).status).toBeGreaterThanOrEqual(500);
    vm.faults.resume = undefined;
  });
});
