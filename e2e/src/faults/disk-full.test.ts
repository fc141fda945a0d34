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
/** More than the monitor of the disk needs to begin. */
const LEFT_MIB = 768;
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

test('on a full disk, requests that need space fail with a code, the others work, and no data is lost', async () => {
  const { sandboxes, access } = own;
  const [id, writer] = [await own.create(), await own.create()];
  const content = randomBytes(4 * 1024 * 1024);
  for (const one of [id, writer]) await sandboxes.files.write(one, '/root/kept', content);
  await own.run(id, 'setsid sleep 3600 >/dev/null 2>&1 & echo $! > /root/pid');
  // Unwritten data would stop the sandboxes as soon as the disk is full.
  for (const one of [id, writer]) await own.run(one, 'sync');

  await disk.fill();

  // The ledger is on the same disk, and gets its reserve within a moment.
  await until('a create is refused for lack of space, by a ledger that works', async () => {
    const refusal = await refusalOf(sandboxes.create(LASTING));
    expect(['409 no_capacity', '503 database_unavailable']).toContain(refusal);
    return refusal === '409 no_capacity';
  });
  await expect(
    sandboxes.files.write(id, '/root/large', randomBytes(UPLOAD_BYTES)),
  ).rejects.toMatchObject({ status: 507, code: 'disk_full' });
  expect((await access.raw({ target: '/healthz' })).status).toBe(200);
  expect(await own.run(id, 'kill -0 "$(cat /root/pid)" && echo alive')).toBe('alive');
  expect((await sandboxes.get(id)).state).toBe('running');
  expect((await sandboxes.pause(writer)).state).toBe('paused');
  expect((await sandboxes.resume(writer)).state).toBe('running');

  // A sandbox that keeps writing is suspended, reports it, and loses no data.
  const writes = 'head -c 384M /dev/zero > /root/written; sync; md5sum < /root/written';
  const writing = own.run(writer, writes).catch((error: unknown) => error);
  await until('the sandbox is suspended', async () => {
    // A command that was sent just before the suspension hangs with the sandbox.
    const answer = await refusalOf(sandboxes.exec(writer, 'true', { timeoutMs: 3_000 }));
    return answer === '507 disk_full';
  });
  expect(await own.run(id, 'cat /proc/sys/kernel/ostype')).toBe('Linux');

  await disk.free();

  const sum = await writing;
  await own.run(writer, 'echo 3 > /proc/sys/vm/drop_caches');
  expect(await own.run(writer, 'md5sum < /root/written')).toBe(sum);
  for (const one of [id, writer]) {
    expect(Buffer.from(await sandboxes.files.read(one, '/root/kept')).equals(content)).toBe(true);
  }
  const created = await until('a create succeeds again', async () => {
    const answer = await sandboxes.create(LASTING).catch((error: unknown) => error);
    if (answer instanceof SvcError) return undefined;
    if (answer instanceof Error) throw answer;
    return answer as Awaited<ReturnType<typeof sandboxes.create>>;
  });
  for (const one of [id, writer, created.vm_id]) {
    await sandboxes.files.write(one, '/root/new', content);
    expect(Buffer.from(await sandboxes.files.read(one, '/root/new')).equals(content)).toBe(true);
    expect(await own.run(one, 'touch /root/touched && echo writable')).toBe('writable');
  }
  await own.crashAndStart();
  expect(await ledgerAgrees(own.instance, own.account, POOL)).toEqual(
    [id, writer, created.vm_id].sort(),
  );

  // A tenant who fills the disk loses the sandbox that holds most of it, and no other.
  await disk.fill(LEFT_MIB);
  await sandboxes.exec(writer, 'head -c 1G /dev/zero > /root/more; sync').catch(() => undefined);
  const ended = await until('the writer has ended', async () => {
    const record = await sandboxes.get(writer);
    return record.state === 'destroyed' ? record : undefined;
  });
  expect(ended.end_reason).toBe('disk_pressure');
  await disk.free();
  for (const one of [id, created.vm_id]) expect(await own.run(one, 'echo alive')).toBe('alive');
  for (const one of [id, created.vm_id]) await sandboxes.delete(one);
  await returnsToIdle(own.instance, own.idle);
});

async function refusalOf(request: Promise<unknown>): Promise<string | undefined> {
  const outcome = await request.catch((error: unknown) => error);
  return outcome instanceof SvcError ? `${outcome.status} ${outcome.code}` : undefined;
}
