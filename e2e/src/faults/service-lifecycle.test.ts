import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { until, vmPid } from '@svc/service-driver';
import { expect, test } from 'vitest';
import { Access } from '../../test/access.ts';
import { idleState, ledgerAgrees, returnsToIdle } from '../../test/machine/consistency.ts';
import { footprintOf, leftoversOf } from '../../test/machine/footprint.ts';
import { instanceOf } from '../../test/machine/instance.ts';
import { LASTING, ownService } from '../../test/own-service.ts';
import { startService } from '../../test/start-service.ts';

const POOL = 1;
/** Times at which a start is killed too: while it opens the database, adopts VMs, and registers. */
const START_KILLED_AFTER_MS = [400, 900, 1_500];
const SHORT_LIFE_S = 25;
/** The reaper passes every ten seconds, and the pass itself takes some time on a loaded machine. */
const LATE_S = 15;

const own = ownService(POOL);

test('a second start on the same data directory is refused with exit code 1', async () => {
  const id = await own.create();
  const starts = [['up'], ['up', '--detach']].map((words) => own.service.svc(...words));
  for (const { exitCode, output } of await Promise.all(starts)) {
    expect(output).toContain('a service already runs on');
    expect(output).toContain(String(own.service.pid));
    expect(exitCode).toBe(1);
  }
  expect(await own.run(id, 'echo here')).toBe('here');
  await own.sandboxes.delete(id);
});

test('two services on one machine do not affect each other while running, crashing or ending', async () => {
  const mine = await own.create();
  await using other = await startService();
  const account = await new Access(other.address).signUp();
  const instance = await instanceOf(other.dataDir);
  expect(instance.index).not.toBe(own.instance.index);
  const { vm_id: theirs } = await account.client.sandboxes.create(LASTING);
  await expect(account.client.sandboxes.get(mine)).rejects.toMatchObject({ status: 404 });

  const before = await until('the pool is full again', async () => {
    const footprint = await footprintOf(own.instance);
    return footprint.vms.length === 1 + POOL && footprint;
  });
  await other.kill();
  await other.startAgain();
  expect((await account.client.sandboxes.exec(theirs, 'echo here')).output).toBe('here\n');
  await account.client.close();
  expect(await other.stop()).toBe(0);
  expect(await leftoversOf(instance)).toEqual([]);
  expect((await footprintOf(own.instance)).vms).toEqual(before.vms);
  expect(await own.run(mine, 'echo here')).toBe('here');
  await own.sandboxes.delete(mine);
  await returnsToIdle(own.instance, own.idle);
});

test('`svc down --keep-sandboxes` keeps sandboxes for the next start, `svc down` leaves nothing', async () => {
  const { service, sandboxes, dataDir, instance } = own;
  const [running = '', paused = ''] = await Promise.all([own.create(), own.create()]);
  await sandboxes.files.write(running, '/root/kept', 'kept');
  await sandboxes.pause(paused);
  const processes = await Promise.all([running, paused].map((id) => vmPid(dataDir, id)));

  const kept = await service.svc('down', '--keep-sandboxes');
  expect(kept.exitCode).toBe(0);
  const between = await footprintOf(instance);
  expect(between.processes).toEqual([]);
  // The VMs of the sandboxes remain, but not those of the pool.
  expect(between.vms.map((line) => Number.parseInt(line, 10)).sort()).toEqual(processes.sort());

  await service.startAgain();
  expect((await sandboxes.get(paused)).state).toBe('paused');
  expect(await own.run(running, 'cat /root/kept')).toBe('kept');
  expect(await ledgerAgrees(instance, own.account, POOL)).toEqual([running, paused].sort());

  const down = await service.svc('down');
  expect(down.exitCode).toBe(0);
  expect(await leftoversOf(instance)).toEqual([]);
  await own.startAgain();
  for (const id of [running, paused]) {
    expect(await sandboxes.get(id)).toMatchObject({ state: 'destroyed', end_reason: 'drained' });
  }
});

test('a failed start does not end the sandboxes of the previous one', async () => {
  const { service, instance } = own;
  const id = await own.create();
  await own.sandboxes.files.write(id, '/root/kept', 'kept');
  await service.kill();
  const { hostname, port } = new URL(service.address.baseUrl);
  const portHolder = createServer().listen({ host: hostname, port: Number(port) });
  await once(portHolder, 'listening');
  const failed = await service.svc('up');
  expect(failed.exitCode).toBe(1);
  portHolder.close();
  await once(portHolder, 'close');

  await service.startAgain();
  expect(await own.run(id, 'cat /root/kept')).toBe('kept');
  expect(await ledgerAgrees(instance, own.account, POOL)).toEqual([id]);
  await own.sandboxes.delete(id);
  await idleState(instance, POOL);
});

test('after a crash every sandbox is unchanged, and ends at its maximum lifetime', async () => {
  const { sandboxes, service, dataDir } = own;
  const [running = '', paused = '', short = ''] = await Promise.all([
    own.create(),
    own.create(),
    own.create({ max_lifetime_seconds: SHORT_LIFE_S }),
  ]);
  for (const id of [running, paused]) await sandboxes.files.write(id, '/root/kept', `of ${id}`);
  await own.run(running, 'setsid sleep 3600 >/dev/null 2>&1 & echo $! > /root/pid');
  await sandboxes.pause(paused);
  const processes = await Promise.all([running, paused].map((id) => vmPid(dataDir, id)));
  const before = await Promise.all([running, paused, short].map((id) => sandboxes.get(id)));

  await own.crashAndStart();
  const { sandboxes: listed, partial } = await sandboxes.list();
  expect(partial).toBe(false);
  const states = new Map(listed.map(({ vm_id, state }) => [vm_id, state]));
  expect([running, paused].map((id) => states.get(id))).toEqual(['running', 'paused']);
  expect(await own.run(running, 'cat /root/kept')).toBe(`of ${running}`);
  expect(await own.run(running, 'kill -0 "$(cat /root/pid)" && echo alive')).toBe('alive');

  // A crash during a start must not lose anything either.
  for (const delay of START_KILLED_AFTER_MS) {
    await service.kill();
    const starting = service.startAgain().catch(() => undefined);
    await sleep(delay);
    await service.kill();
    await starting;
  }
  await service.startAgain();
  const restarted = Date.now();

  expect((await sandboxes.get(paused)).state).toBe('paused');
  expect((await sandboxes.resume(paused)).state).toBe('running');
  expect(Buffer.from(await sandboxes.files.read(paused, '/root/kept')).toString()).toBe(
    `of ${paused}`,
  );
  await sandboxes.files.write(running, '/root/new', 'after');
  expect(await own.run(running, 'cat /root/new')).toBe('after');
  expect(await Promise.all([running, paused].map((id) => vmPid(dataDir, id)))).toEqual(processes);
  const after = await Promise.all([running, paused, short].map((id) => sandboxes.get(id)));
  expect(after.map(({ created_at }) => created_at)).toEqual(
    before.map(({ created_at }) => created_at),
  );

  const ended = await until('the maximum lifetime has passed', async () => {
    const record = await sandboxes.get(short);
    return record.state === 'destroyed' && record;
  });
  expect(ended.end_reason).toBe('max_lifetime');
  const [from, to] = [Date.parse(ended.created_at), Date.parse(ended.ended_at ?? '')];
  const due = from + SHORT_LIFE_S * 1000;
  expect(to).toBeGreaterThanOrEqual(due);
  // While the service was down, it could not end the sandbox.
  expect(to).toBeLessThan(Math.max(due, restarted) + LATE_S * 1000);

  for (const id of [running, paused]) await sandboxes.delete(id);
  await returnsToIdle(own.instance, own.idle);
});

test('`svc down` leaves nothing of a crashed service', async () => {
  const { service, instance } = own;
  await own.create();
  await own.sandboxes.pause(await own.create());
  await service.kill();
  const { exitCode, output } = await service.svc('down');
  expect(output).toMatch(/ended \d+ micro-VM/);
  expect(exitCode).toBe(0);
  expect(await leftoversOf(instance)).toEqual([]);
  // The next start records their end in the ledger.
  await own.startAgain();
  await returnsToIdle(own.instance, own.idle);
});
