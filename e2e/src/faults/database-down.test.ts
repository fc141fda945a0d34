import { rename } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { SvcError } from '@svc/sdk';
import { databaseServer, until } from '@svc/service-driver';
import { expect, test } from 'vitest';
import { ledgerAgrees, returnsToIdle } from '../../test/machine/consistency.ts';
import { killHard } from '../../test/machine/processes.ts';
import { LASTING, ownService } from '../../test/own-service.ts';

const POOL = 1;

const own = ownService(POOL);

test('a database that dies costs 503s for a moment, and comes back by itself', async () => {
  const { sandboxes, dataDir } = own;
  const id = await own.create();
  const first = await databaseServer(dataDir);
  const outcomes = new Set<string>();
  let working = true;
  const asking = Promise.all(
    [() => sandboxes.get(id), () => sandboxes.list(), () => own.run(id, 'true')].map(
      async (ask) => {
        while (working) {
          outcomes.add(await outcomeOf(ask()));
          await sleep(10);
        }
      },
    ),
  );
  await until('a first answer', async () => outcomes.has('ok'));
  killHard(first?.pid ?? Number.NaN);
  await until('a refusal', async () => outcomes.has('503 database_unavailable'));
  await until('another server', async () => {
    const now = await databaseServer(dataDir);
    return now !== undefined && now.pid !== first?.pid;
  });
  await until('an answer', async () => (await outcomeOf(sandboxes.get(id))) === 'ok');
  working = false;
  await asking;
  expect([...outcomes].sort()).toEqual(['503 database_unavailable', 'ok']);
  expect(await own.run(id, 'echo here')).toBe('here');
  expect(await ledgerAgrees(own.instance, own.account, POOL)).toEqual([id]);
  await sandboxes.delete(id);
  await returnsToIdle(own.instance, own.idle);
});

test('while there is no database every request says so, sandboxes live on, and all recovers', async () => {
  const { sandboxes, access, dataDir } = own;
  const id = await own.create();
  await own.run(id, 'setsid sleep 3600 >/dev/null 2>&1 & echo $! > /root/pid');
  const server = await databaseServer(dataDir);
  const [cluster, away] = [`${dataDir}/postgres`, `${dataDir}/postgres-away`];
  await rename(cluster, away);
  killHard(server?.pid ?? Number.NaN);
  try {
    await until('a refusal', async () => (await outcomeOf(sandboxes.get(id))) !== 'ok');
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
  await until('readiness', async () => (await access.raw({ target: '/readyz' })).status === 200);
  expect(await own.run(id, 'kill -0 "$(cat /root/pid)" && echo lives')).toBe('lives');
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
