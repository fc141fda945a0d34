import { rename } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { SvcError } from '@svc/sdk';
import { databaseServer, until, vmPid, vmRecords } from '@svc/service-driver';
import { expect, test } from 'vitest';
import { ledgerAgrees, returnsToIdle } from '../../test/machine/consistency.ts';
import { killHard } from '../../test/machine/processes.ts';
import { LASTING, ownService } from '../../test/own-service.ts';

const POOL = 1;
const DETECTED_WITHIN_MS = 5_000;

const own = ownService(POOL);

test('a sandbox whose VM dies is destroyed within five seconds with a reason; the others keep running', async () => {
  const { sandboxes, dataDir } = own;
  const ids = await Promise.all([own.create(), own.create(), own.create()]);
  const [running = '', paused = '', other = ''] = ids;
  await sandboxes.pause(paused);
  const busy = sandboxes.exec(running, 'sleep 600').catch((error: unknown) => error);
  await until(
    'the command runs',
    async () => (await own.run(running, 'pgrep -fx "sleep 600" || true')) !== '',
  );
  for (const id of [running, paused]) {
    killHard(await vmPid(dataDir, id));
    const ended = await until(
      'the loss is detected',
      async () => {
        const record = await sandboxes.get(id);
        return record.state === 'destroyed' && record;
      },
      { deadlineMs: DETECTED_WITHIN_MS },
    );
    expect(ended.end_reason).toBe('worker_lost');
    expect(ended.ended_at).toBeDefined();
    expect(await own.run(other, 'echo here')).toBe('here');
  }
  expect(await busy).toMatchObject({ name: 'SvcError', code: 'sandbox_not_running' });
  await expect(sandboxes.exec(running, 'true')).rejects.toMatchObject({
    code: 'sandbox_not_running',
    status: 409,
  });
  await sandboxes.delete(other);
  await returnsToIdle(own.instance, own.idle);
});

test('a dead VM in the pool is replaced', async () => {
  const { dataDir } = own;
  const [idle] = await vmRecords(dataDir);
  killHard(idle?.pid ?? Number.NaN);
  // Immediately, before the pool may have detected the loss.
  const id = await own.create();
  expect(await own.run(id, 'echo here')).toBe('here');
  await until('another VM has taken its place', async () => {
    const vms = await vmRecords(dataDir);
    const ready = vms.some((vm) => vm.vmId === undefined && vm.pid !== undefined);
    return ready && vms.every(({ name }) => name !== idle?.name);
  });
  expect(await ledgerAgrees(own.instance, own.account, POOL)).toEqual([id]);
  await own.sandboxes.delete(id);
  await returnsToIdle(own.instance, own.idle);
});

test('sandboxes whose VM died while the service was down are destroyed after the next start', async () => {
  const { sandboxes, service, dataDir } = own;
  const [dead = '', alive = ''] = await Promise.all([own.create(), own.create()]);
  const process = await vmPid(dataDir, dead);
  await service.kill();
  killHard(process);
  await service.startAgain();
  const ended = await until('the loss is detected', async () => {
    const record = await sandboxes.get(dead);
    return record.state === 'destroyed' && record;
  });
  expect(ended.end_reason).toBe('worker_lost');
  expect(await ledgerAgrees(own.instance, own.account, POOL)).toEqual([alive]);
  await sandboxes.delete(alive);
  await returnsToIdle(own.instance, own.idle);
});

test('a database that dies is restarted, and requests answer 503 until then', async () => {
  const { sandboxes, dataDir } = own;
  const id = await own.create();
  const first = await databaseServer(dataDir);
  const outcomes = new Set<string>();
  let working = true;
  const requesting = Promise.all(
    [() => sandboxes.get(id), () => sandboxes.list(), () => own.run(id, 'true')].map(
      async (request) => {
        while (working) {
          outcomes.add(await outcomeOf(request()));
          await sleep(10);
        }
      },
    ),
  );
  await until('a request has succeeded', async () => outcomes.has('ok'));
  killHard(first?.pid ?? Number.NaN);
  await until('a request has failed', async () => outcomes.has('503 database_unavailable'));
  await until('another server runs', async () => {
    const now = await databaseServer(dataDir);
    return now !== undefined && now.pid !== first?.pid;
  });
  await until(
    'a request succeeds again',
    async () => (await outcomeOf(sandboxes.get(id))) === 'ok',
  );
  working = false;
  await requesting;
  expect([...outcomes].sort()).toEqual(['503 database_unavailable', 'ok']);
  expect(await own.run(id, 'echo here')).toBe('here');
  expect(await ledgerAgrees(own.instance, own.account, POOL)).toEqual([id]);
  await sandboxes.delete(id);
  await returnsToIdle(own.instance, own.idle);
});

test('without a database every request answers 503, sandboxes keep running, and everything recovers', async () => {
  const { sandboxes, access, dataDir } = own;
  const id = await own.create();
  await own.run(id, 'setsid sleep 3600 >/dev/null 2>&1 & echo $! > /root/pid');
  const server = await databaseServer(dataDir);
  const [cluster, away] = [`${dataDir}/postgres`, `${dataDir}/postgres-away`];
  await rename(cluster, away);
  killHard(server?.pid ?? Number.NaN);
  try {
    await until('a request fails', async () => (await outcomeOf(sandboxes.get(id))) !== 'ok');
    const requests = [
      sandboxes.get(id),
      sandboxes.list(),
      sandboxes.exec(id, 'true'),
      sandboxes.pause(id),
      sandboxes.delete(id),
      sandboxes.create(LASTING),
      sandboxes.files.read(id, '/root/pid'),
      sandboxes.files.write(id, '/root/new', 'new'),
      own.account.client.tenants.me(),
    ];
    const outcomes = await Promise.all(requests.map(outcomeOf));
    expect(new Set(outcomes)).toEqual(new Set(['503 database_unavailable']));
    expect((await access.raw({ target: '/healthz' })).status).toBe(200);
    expect((await access.raw({ target: '/readyz' })).status).toBe(503);
  } finally {
    await rename(away, cluster);
  }
  await until(
    'the service is ready',
    async () => (await access.raw({ target: '/readyz' })).status === 200,
  );
  expect(await own.run(id, 'kill -0 "$(cat /root/pid)" && echo alive')).toBe('alive');
  expect(await ledgerAgrees(own.instance, own.account, POOL)).toEqual([id]);
  const another = await own.create();
  for (const one of [id, another]) await sandboxes.delete(one);
  await returnsToIdle(own.instance, own.idle);
});

async function outcomeOf(request: Promise<unknown>): Promise<string> {
  try {
    await request;
    return 'ok';
  } catch (error) {
    if (error instanceof SvcError) return `${error.status} ${error.code}`;
    throw error;
  }
}
