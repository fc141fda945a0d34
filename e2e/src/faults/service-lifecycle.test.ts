import { once } from 'node:events';
import { createServer } from 'node:net';
import { until, vmPid } from '@svc/service-driver';
import { expect, test } from 'vitest';
import { Access } from '../../test/access.ts';
import { idleState, ledgerAgrees, returnsToIdle } from '../../test/machine/consistency.ts';
import { footprintOf, leftoversOf } from '../../test/machine/footprint.ts';
import { instanceOf } from '../../test/machine/instance.ts';
import { LASTING, ownService } from '../../test/own-service.ts';
import { startService } from '../../test/start-service.ts';

const POOL = 1;

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
