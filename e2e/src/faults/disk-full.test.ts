import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { SvcError } from '@svc/sdk';
import { until } from '@svc/service-driver';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ledgerAgrees, returnsToIdle } from '../../test/machine/consistency.ts';
import { SmallDisk } from '../../test/machine/small-disk.ts';
import { LASTING, OwnService } from '../../test/own-service.ts';

const POOL = 0;
const DISK_MIB = 3 * 1024;
const UPLOAD_BYTES = 64 * 1024 * 1024;

let disk: SmallDisk;
let own: OwnService;

beforeAll(async () => {
  disk = await SmallDisk.make(DISK_MIB);
  const dataDir = join(disk.path, 'data');
  await mkdir(dataDir);
  own = new OwnService(POOL, { dataDir });
  await own.start();
});

afterAll(async () => {
  await disk.free();
  await own.end();
  await disk[Symbol.asyncDispose]();
});

test('on a full disk what needs room is refused by name, the rest goes on, and nothing is damaged', async () => {
  const { sandboxes, access } = own;
  const [id, parked] = [await own.create(), await own.create()];
  const content = randomBytes(4 * 1024 * 1024);
  for (const one of [id, parked]) await sandboxes.files.write(one, '/root/kept', content);
  await own.run(id, 'setsid sleep 3600 >/dev/null 2>&1 & echo $! > /root/pid');
  // What they still had to write would stop them as soon as the disk is full.
  for (const one of [id, parked]) await own.run(one, 'sync');

  await disk.fill();

  await expect(sandboxes.create(LASTING)).rejects.toMatchObject({ code: 'no_capacity' });
  await expect(
    sandboxes.files.write(id, '/root/large', randomBytes(UPLOAD_BYTES)),
  ).rejects.toMatchObject({ status: 507, code: 'disk_full' });
  expect((await access.raw({ target: '/healthz' })).status).toBe(200);
  expect(await own.run(id, 'kill -0 "$(cat /root/pid)" && echo lives')).toBe('lives');
  expect((await sandboxes.get(id)).state).toBe('running');
  expect((await sandboxes.pause(parked)).state).toBe('paused');
  expect((await sandboxes.resume(parked)).state).toBe('running');

  // One that goes on writing stands still, says so, and loses nothing of what it wrote.
  const writes = 'head -c 96M /dev/urandom > /root/written; sync; md5sum < /root/written';
  const writing = own.run(parked, writes).catch((error: unknown) => error);
  await until('it stands still', async () => {
    // One that was sent just before it stood still waits with it.
    const answer = await refusalOf(sandboxes.exec(parked, 'true', { timeoutMs: 3_000 }));
    return answer === '507 disk_full';
  });
  expect(await own.run(id, 'cat /proc/sys/kernel/ostype')).toBe('Linux');

  await disk.free();

  const sum = await writing;
  await own.run(parked, 'echo 3 > /proc/sys/vm/drop_caches');
  expect(await own.run(parked, 'md5sum < /root/written')).toBe(sum);
  for (const one of [id, parked]) {
    expect(Buffer.from(await sandboxes.files.read(one, '/root/kept')).equals(content)).toBe(true);
  }
  const created = await until('a create works again', async () => {
    const answer = await sandboxes.create(LASTING).catch((error: unknown) => error);
    if (answer instanceof SvcError) return undefined;
    if (answer instanceof Error) throw answer;
    return answer as Awaited<ReturnType<typeof sandboxes.create>>;
  });
  for (const one of [id, parked, created.vm_id]) {
    await sandboxes.files.write(one, '/root/new', content);
    expect(Buffer.from(await sandboxes.files.read(one, '/root/new')).equals(content)).toBe(true);
    expect(await own.run(one, 'touch /root/touched && echo writable')).toBe('writable');
  }
  await own.crashAndStart();
  expect(await ledgerAgrees(own.instance, own.account, POOL)).toEqual(
    [id, parked, created.vm_id].sort(),
  );
  for (const one of [id, parked, created.vm_id]) await sandboxes.delete(one);
  await returnsToIdle(own.instance, own.idle);
});

async function refusalOf(request: Promise<unknown>): Promise<string | undefined> {
  const outcome = await request.catch((error: unknown) => error);
  return outcome instanceof SvcError ? `${outcome.status} ${outcome.code}` : undefined;
}
