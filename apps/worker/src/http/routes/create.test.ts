import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Harness } from '../../../test/harness.ts';
import { placement } from '../../../test/placement.ts';

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});

afterAll(() => harness[Symbol.asyncDispose]());

describe('create, get, list and delete', () => {
  it('returns the record of the running sandbox, and shows it later', async () => {
    const request = placement({ tenant_id: 'usr_record', env_vars: { A: 'b' } });
    const created = await harness.json('POST', '/sandboxes', request);
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({
      vm_id: request.vm_id,
      generation: 1,
      state: 'running',
      vcpu: 1,
      memory_mib: 512,
      rootfs: 'standard-1.img',
      host_port: 22,
      created_at: request.created_at,
      active_connections: 0,
    });
    const shown = await harness.json('GET', `/sandboxes/${request.vm_id}`);
    expect(shown.body).toMatchObject({ vm_id: request.vm_id, state: 'running', cpu_seconds: 1.5 });
    const mine = await harness.json('GET', '/sandboxes?tenant_id=usr_record');
    expect(mine.body).toMatchObject({ sandboxes: [{ vm_id: request.vm_id }] });
    const [given] = harness.host.vmOf(request.vm_id).given;
    expect(given).toEqual({
      hostname: request.vm_id.replace('_', '-'),
      env: { A: 'b' },
      owner: 'usr_record',
    });
  });

  it('returns the same sandbox for the same id and generation', async () => {
    const request = placement();
    const before = harness.host.requests.length;
    const answers = await Promise.all(
      [1, 2, 3].map(() => harness.json('POST', '/sandboxes', request)),
    );
    answers.push(await harness.json('POST', '/sandboxes', request));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(harness.host.requests.length - before).toBe(1);
  });

  it('refuses an older generation, and replaces the sandbox for a newer one', async () => {
    const id = await harness.create({ generation: 2 });
    const first = harness.host.vmOf(id);
    const old = await harness.json('POST', '/sandboxes', placement({ vm_id: id, generation: 1 }));
    expect(old).toMatchObject({ status: 409, body: { code: 'stale_generation' } });
    await harness.create({ vm_id: id, generation: 3 });
    expect(first.isGone).toBe(true);
    expect(harness.host.vmOf(id).labels).toMatchObject({ generation: 3, state: 'running' });
  });

  it('does not recreate an ended sandbox', async () => {
    const id = await harness.create();
    await harness.json('DELETE', `/sandboxes/${id}`);
    const again = await harness.json('POST', '/sandboxes', placement({ vm_id: id }));
    expect(again).toMatchObject({ status: 409, body: { code: 'sandbox_not_running' } });
  });

  it('refuses an unknown template', async () => {
    const request = placement({ template: 'nonesuch' });
    const answer = await harness.json('POST', '/sandboxes', request);
    expect(answer).toMatchObject({ status: 501, body: { code: 'unknown_template' } });
    const unknown = await harness.json('GET', `/sandboxes/${request.vm_id}`);
    expect(unknown.status).toBe(404);
  });

  it('deletes idempotently, keeps the first reason, and shows the record', async () => {
    const id = await harness.create();
    const vm = harness.host.vmOf(id);
    for (const reason of ['credits_exhausted', 'deleted']) {
      const answer = await harness.json('DELETE', `/sandboxes/${id}?reason=${reason}`);
      expect(answer).toMatchObject({
        status: 200,
        body: { state: 'destroyed', end_reason: 'credits_exhausted' },
      });
    }
    expect(vm.isGone).toBe(true);
    const shown = await harness.json('GET', `/sandboxes/${id}`);
    expect(shown.body).toMatchObject({ state: 'destroyed', ended_at: expect.any(String) });
    const missing = await harness.json('DELETE', '/sandboxes/vm_none');
    expect(missing).toMatchObject({ status: 404, body: { code: 'sandbox_not_found' } });
  });
});
