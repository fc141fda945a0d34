import { setTimeout as sleep } from 'node:timers/promises';
import { until, vmPid } from '@svc/service-driver';
import { expect, test } from 'vitest';
import { returnsToIdle } from '../../test/machine/consistency.ts';
import { leftoversOf } from '../../test/machine/footprint.ts';
import { ownService } from '../../test/own-service.ts';

const POOL = 1;
/** Times at which a start is killed too: while it opens the database, adopts VMs, and registers. */
const START_KILLED_AFTER_MS = [400, 900, 1_500];
const SHORT_LIFE_S = 25;
/** The reaper passes every ten seconds, and the pass itself takes some time on a loaded machine. */
const LATE_S = 15;

const own = ownService(POOL);

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

test('a workspace survives a crash and a stop of the service: what was written before and after is saved', async () => {
  const { sandboxes } = own;
  const workspace = { workspace_enabled: true, app_id: 'crash', capset_id: 'c' };
  const first = await own.create(workspace);
  await own.run(first, 'cd /workspace && mkdir dir && echo before > dir/before');
  await own.crashAndStart();
  await own.run(first, 'cd /workspace && echo after > dir/after && chmod 600 dir/before');
  await sandboxes.delete(first);
  const second = await own.create(workspace);
  expect(await own.run(second, 'cd /workspace/dir && stat -c "%n %a" * && cat *')).toBe(
    'after 644\nbefore 600\nafter\nbefore',
  );
  await own.run(second, 'echo late > /workspace/late && rm /workspace/dir/before');
  expect((await own.service.svc('down')).exitCode).toBe(0);
  await own.startAgain();
  const third = await own.create(workspace);
  expect(await own.run(third, 'cd /workspace && cat late && ls dir')).toBe('late\nafter');
  await sandboxes.delete(third);
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
