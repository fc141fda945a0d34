import { MicrovmError } from '@svc/microvm';
import { describe, expect, it } from 'vitest';
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
      json: { keys },
    });
    expect(answer.statusCode).toBe(204);
    expect(await client.next(({ event }) => event === 'config_update')).toMatchObject({
      keys,
      seq: 1,
    });
    await expect
      .poll(() => lab().guest.all('env').at(-1))
      .toEqual({ type: 'env', env: { GREETING: 'good day' } });
    expect(JSON.stringify([lab().guest.heard, client.frames])).not.toContain('sk-the');
  });

  it('reaches a guest whose link is down once the link is up again', async () => {
    const { guest } = lab();
    const { vmId } = await lab().harness.startSession();
    guest.open = false;
    guest.cut();
    await lab().harness.call('POST', `/sandboxes/${vmId}/config-update`, {
      json: { keys: ['GREETING'] },
    });
    expect(guest.all('env')).toEqual([]);
    guest.open = true;
    await expect.poll(() => guest.all('env').length).toBeGreaterThan(0);
  });

  it('fails when the values cannot be fetched, and is refused for an unknown or destroyed sandbox', async () => {
    const { harness } = lab();
    const { vmId } = await harness.startSession();
    harness.controlPlane.broken = true;
    const json = { keys: ['GREETING'] };
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
