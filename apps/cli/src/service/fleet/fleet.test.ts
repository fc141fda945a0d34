import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Component, START_MS, TestFleet } from '../../../test/fleet.ts';
import type { Outcome } from '../../../test/run-svc.ts';

const EXEC_SECONDS = 60;

let fleet: TestFleet;
let first: Component;
let worker: Component;
let svc: (args: readonly string[]) => Promise<Outcome>;

beforeAll(async () => {
  fleet = await TestFleet.start();
  first = await fleet.controlPlane('first');
  await fleet.controlPlane('second');
  worker = await fleet.worker();
  svc = await fleet.customer();
}, START_MS);

afterAll(() => fleet?.[Symbol.asyncDispose](), START_MS);

async function create(): Promise<string> {
  return (await svc(['sandbox', 'create', '--idle-timeout', '1h'])).output.trim();
}

async function record(id: string): Promise<Record<string, unknown>> {
  return JSON.parse((await svc(['sandbox', 'get', id])).output);
}

function ok(output: string): Outcome {
  return { code: 0, output, errors: '' };
}

test(
  'a command outlasts the restart of the control plane that serves it',
  async () => {
    const id = await create();
    const slow = svc(['sandbox', 'exec', id, `touch /begun; sleep ${EXEC_SECONDS}; echo done`]);
    const begun = () => svc(['sandbox', 'exec', id, 'ls /begun']);
    await expect.poll(begun, { interval: 500 }).toEqual(ok('/begun\n'));
    expect(await fleet.balancer.ready()).toBe(first.url);

    const stopped = first.stop('SIGTERM');
    await expect.poll(() => fleet.balancer.ready()).not.toBe(first.url);
    expect(await svc(['sandbox', 'exec', id, 'whoami'])).toEqual(ok('root\n'));
    expect(await slow).toEqual(ok('done\n'));
    expect(await stopped).toBe(0);
  },
  START_MS,
);

test(
  'a worker keeps its sandboxes on SIGTERM, and ends them on a drain or on Ctrl-C',
  async () => {
    const kept = await create();
    await svc(['sandbox', 'exec', kept, 'echo kept >/root/note']);
    expect(await worker.stop('SIGTERM')).toBe(0);
    worker = await fleet.worker();
    expect(await svc(['sandbox', 'exec', kept, 'cat /root/note'])).toEqual(ok('kept\n'));

    const drained = await fleet.onWorker(['worker', 'drain']);
    expect(drained).toMatchObject({ code: 0, output: expect.stringContaining('drain') });
    expect(await worker.exited).toBe(0);
    expect(await record(kept)).toMatchObject({ state: 'destroyed', end_reason: 'drained' });
    expect(await fleet.onWorker(['worker', 'drain'])).toMatchObject({
      code: 1,
      errors: expect.stringContaining('no_worker'),
    });

    for (const [settings, signal] of [
      [{ SVC_WORKER_ON_SIGTERM: 'end' }, 'SIGTERM'],
      [{}, 'SIGINT'],
    ] as const) {
      worker = await fleet.worker(settings);
      const ended = await create();
      expect(await worker.stop(signal)).toBe(0);
      expect(await record(ended)).toMatchObject({ state: 'destroyed', end_reason: 'drained' });
    }
    worker = await fleet.worker();
  },
  START_MS,
);

test(
  'an operator cordons, uncordons, drains and removes a worker from elsewhere',
  async () => {
    const list = async () =>
      JSON.parse((await fleet.onControlPlane(['worker', 'ls', '--json'])).output);
    const running = await create();
    const [listed] = await list();
    expect(listed).toMatchObject({ standing: 'ready', sandboxes: 1 });
    expect(listed.templates).toContainEqual(
      expect.objectContaining({ template: 'standard', ready: true }),
    );
    const order = (name: string) => fleet.onControlPlane(['worker', name, listed.worker_id]);

    expect(await order('rm')).toMatchObject({
      code: 1,
      errors: expect.stringContaining('worker_in_use'),
    });
    expect(await order('cordon')).toMatchObject({ code: 0 });
    expect(await list()).toMatchObject([{ standing: 'cordoned', sandboxes: 1 }]);
    expect(await svc(['sandbox', 'create'])).toMatchObject({
      code: 1,
      errors: expect.stringContaining('no_workers'),
    });
    expect(await svc(['sandbox', 'exec', running, 'whoami'])).toEqual(ok('root\n'));
    expect(await worker.stop('SIGTERM')).toBe(0);
    worker = await fleet.worker();
    expect(await list()).toMatchObject([{ standing: 'cordoned', sandboxes: 1 }]);
    expect(await order('uncordon')).toMatchObject({ code: 0 });
    const other = await create();

    expect(await order('drain')).toMatchObject({ code: 0 });
    expect(await worker.exited).toBe(0);
    for (const id of [running, other]) {
      expect(await record(id)).toMatchObject({ state: 'destroyed', end_reason: 'drained' });
    }
    await expect
      .poll(async () => (await order('rm')).code, { timeout: 120_000, interval: 2_000 })
      .toBe(0);
    expect(await list()).toEqual([]);
    expect(await order('cordon')).toMatchObject({
      code: 1,
      errors: expect.stringContaining('worker_not_found'),
    });
  },
  START_MS,
);
