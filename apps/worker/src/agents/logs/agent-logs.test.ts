import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { AGENT_LOG_PATH, type LogTail, ServiceError, type WorkerLog } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { tailOf } from '@svc/service-kit/log-tail';
import { describe, expect, it } from 'vitest';
import { ONE_SHOT } from '../../../test/placement.ts';
import { useSessionLab } from '../../../test/session-lab.ts';
import { silentLogger } from '../../../test/silent-logger.ts';
import { ControlPlaneError } from '../../control-plane/control-plane-transport.ts';
import { AgentLogs } from './agent-logs.ts';
import { LogDelivery } from './log-delivery.ts';

const MIB = 1024 * 1024;
const UNAVAILABLE = { status: 503, body: { code: 'logs_unavailable' } };

const lab = useSessionLab({ agentTimeouts: { saveMs: 500 } });

const logs = async (id: string, tail: LogTail = { lines: 1 }) => {
  const query = 'lines' in tail ? `lines=${tail.lines}` : `bytes=${tail.bytes}`;
  const answer = await lab().harness.json('GET', `/sandboxes/${id}/logs?${query}`);
  if (answer.status !== 200) return answer;
  const { end, total_bytes: totalBytes } = answer.body as WorkerLog;
  return { status: 200, body: tailOf({ bytes: Buffer.from(end, 'base64'), totalBytes }, tail) };
};
const remove = (id: string) => lab().harness.json('DELETE', `/sandboxes/${id}`);
const copies = () => readdir(directory()).catch(() => []);
const directory = () => join(lab().harness.dataDir, 'logs', 'agents');
const vmOf = (id: string) => lab().harness.host.vmOf(id);
const write = (id: string, log: string | Buffer) =>
  vmOf(id).files.set(AGENT_LOG_PATH, Buffer.from(log));

const startOneShot = () => lab().harness.create({ agent: ONE_SHOT });
const startSession = async () => {
  lab().guest.conversation = 'c';
  return (await lab().harness.startSession()).vmId;
};

describe.each([
  ['a one-shot agent', startOneShot],
  ['the agent of a session', startSession],
])('the log of %s', (_kind, start) => {
  it('is read in the sandbox while it runs, and from a copy while it is paused', async () => {
    const id = await start();
    expect(await logs(id)).toMatchObject({ body: { content: '', total_bytes: 0 } });
    write(id, 'one\ntwo\n');
    expect(await logs(id)).toEqual({
      status: 200,
      body: { content: 'two\n', truncated: true, total_bytes: 8 },
    });
    write(id, 'one\ntwo\nthree\n');
    await lab().harness.json('POST', `/sandboxes/${id}/pause`);
    expect(await logs(id)).toMatchObject({ body: { content: 'three\n' } });
    expect(vmOf(id).paused).toBe(true);
  });

  it('is with the control plane when the end of its sandbox is reported', async () => {
    const id = await start();
    write(id, 'one\ntwo 😀\n');
    await remove(id);
    expect(lab().store.logs.get(id)).toEqual({ text: 'one\ntwo 😀\n', totalBytes: 13 });
    expect(await copies()).toEqual([]);
    expect(await logs(id)).toMatchObject(UNAVAILABLE);
  });

  it('is sent from its copy when the sandbox ends while it is paused', async () => {
    const id = await start();
    write(id, 'before the pause\n');
    await lab().harness.json('POST', `/sandboxes/${id}/pause`);
    await remove(id);
    expect(lab().store.logs.get(id)).toMatchObject({ text: 'before the pause\n' });
  });

  it('is unavailable, not empty, while the guest cannot be read', async () => {
    const id = await start();
    write(id, 'one\n');
    const { faults } = vmOf(id);
    faults.download = new MicrovmError('guest_unreachable', 'busy');
    expect(await logs(id)).toMatchObject(UNAVAILABLE);
    faults.download = undefined;
    expect(await logs(id)).toMatchObject({ status: 200, body: { content: 'one\n' } });
    faults.download = new MicrovmError('guest_unreachable', 'busy');
    await remove(id);
    expect(await logs(id)).toMatchObject(UNAVAILABLE);
    expect(lab().store.logs.has(id)).toBe(false);
  });

  it('of a dead VM is not an older copy that lacks its end', async () => {
    const id = await start();
    write(id, 'early\n');
    await lab().harness.json('POST', `/sandboxes/${id}/pause`);
    await lab().harness.json('POST', `/sandboxes/${id}/resume`);
    write(id, 'early\nlate\n');
    vmOf(id).die();
    await expect
      .poll(() => lab().harness.json('GET', `/sandboxes/${id}`))
      .toMatchObject({ body: { state: 'destroyed' } });
    expect(await logs(id)).toMatchObject(UNAVAILABLE);
    expect(lab().store.logs.has(id)).toBe(false);
  });

  it('outlasts an outage of the control plane and a restart of the worker', async () => {
    const id = await start();
    write(id, 'the end\n');
    lab().store.logFailure = new ServiceError('database_unavailable');
    await remove(id);
    expect(await logs(id)).toMatchObject({ status: 200, body: { content: 'the end\n' } });
    await lab().restart();
    expect(await logs(id)).toMatchObject({ status: 200, body: { content: 'the end\n' } });
    expect(lab().store.logs.has(id)).toBe(false);
    await lab().restart(() => {
      lab().store.logFailure = undefined;
    });
    await expect.poll(() => lab().store.logs.get(id)).toMatchObject({ text: 'the end\n' });
    await expect.poll(copies).toEqual([]);
  });

  it('is sent as its last megabyte', async () => {
    const id = await start();
    write(id, Buffer.alloc(40 * MIB, 'x'));
    expect(await logs(id, { bytes: 5 })).toMatchObject({
      status: 200,
      body: { content: 'xxxxx', truncated: true, total_bytes: 40 * MIB },
    });
    await remove(id);
    expect(lab().store.logs.get(id)).toEqual({ text: 'x'.repeat(MIB), totalBytes: 40 * MIB });
  });
});

it('of an agent that has exited is sent at once, so that it outlives the machine', async () => {
  const id = await startOneShot();
  write(id, 'the end\n');
  lab().guest.exited(1);
  await expect.poll(() => lab().store.logs.get(id)).toMatchObject({ text: 'the end\n' });
  vmOf(id).die();
  await expect
    .poll(() => lab().harness.json('GET', `/sandboxes/${id}`))
    .toMatchObject({ body: { state: 'destroyed', agent_exit_code: 1 } });
  expect(lab().store.logs.get(id)).toMatchObject({ text: 'the end\n' });
});

describe('the delivery of copies', () => {
  const live = new Set(['vm_live']);
  const keep = async (...ids: string[]) => {
    const kept = new AgentLogs(directory());
    for (const id of ids) await kept.keep(id, { bytes: Buffer.from('x'), totalBytes: 1 });
    return kept;
  };
  const deliveryOf = (kept: AgentLogs, putAgentLog: (vmId: string) => Promise<void>) =>
    new LogDelivery({
      logs: kept,
      api: { putAgentLog },
      registry: { find: (vmId) => ({ isLive: live.has(vmId) }) },
      clock: { wall: () => Date.now(), monotonic: () => performance.now() },
      logger: silentLogger,
      onFault: (error) => {
        throw error;
      },
    });
  const pass = (delivery: LogDelivery) => delivery.pass(new AbortController().signal);

  it('deletes those that no record refers to any more, and keeps those of live sandboxes', async () => {
    const kept = await keep('vm_old', 'vm_live', 'vm_new');
    const old = new Date(Date.now() - 901_000);
    for (const id of ['vm_old', 'vm_live']) {
      await utimes(join(directory(), `${id}.log-end`), old, old);
    }
    const sent: string[] = [];
    await pass(deliveryOf(kept, async (vmId) => void sent.push(vmId)));
    expect(sent).toEqual(['vm_new']);
    expect((await kept.list()).map(({ vmId }) => vmId)).toEqual(['vm_live']);
  });

  it('stops at the first failure that may pass, and deletes what is refused', async () => {
    const kept = await keep('vm_1', 'vm_2');
    let tries = 0;
    await pass(
      deliveryOf(kept, async () => {
        tries += 1;
        throw new Error('unreachable');
      }),
    );
    expect(tries).toBe(1);
    await pass(
      deliveryOf(kept, async () => {
        throw new ControlPlaneError(404, 'sandbox_not_found');
      }),
    );
    expect(await kept.list()).toEqual([]);
  });
});
