import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { beforeEach, describe, expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import type { MemoryMicrovm } from '../../test/memory-microvm.ts';
import { placement } from '../../test/placement.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { download } from './download.ts';
import { upload } from './upload.ts';

const NEVER = new AbortController().signal;
const LIMITS = { maxUploadBytes: 1_000_000, stallMs: 60_000 };
const IMPATIENT = { ...LIMITS, stallMs: 20 };
let sandbox: Sandbox;
let vm: MemoryMicrovm;

beforeEach(async () => {
  const host = new MemoryHost();
  sandbox = await new CoreHarness(host).creator.create(placement(), NEVER);
  vm = host.vmOf(sandbox.id);
});

function isIdle(): boolean {
  return sandbox.activity.idleSince !== undefined;
}

describe('upload', () => {
  it('counts as activity until it is done', async () => {
    const source = new PassThrough();
    const done = upload(sandbox, '/f', source, LIMITS, NEVER);
    source.write('ab');
    expect(isIdle()).toBe(false);
    source.end('c');
    await done;
    expect(isIdle()).toBe(true);
    expect(vm.files.get('/f')?.toString()).toBe('abc');
  });

  it.each([
    ['at once', []],
    ['half way', ['some']],
  ])('is aborted when the sender stalls %s', async (_when, parts) => {
    const source = new PassThrough();
    for (const part of parts) source.write(part);
    const done = upload(sandbox, '/f', source, IMPATIENT, NEVER);
    await expect(done).rejects.toMatchObject({ code: 'request_timeout' });
    expect(vm.files.has('/f')).toBe(false);
    expect(isIdle()).toBe(true);
  });

  it('is aborted when the guest reads nothing', async () => {
    vm.upload = () => new Promise(() => undefined);
    const source = Readable.from([Buffer.alloc(900_000)]);
    const done = upload(sandbox, '/f', source, IMPATIENT, NEVER);
    await expect(done).rejects.toMatchObject({ code: 'request_timeout' });
  });

  it('leaves the sender’s stream open for the response when the guest refuses', async () => {
    const source = new PassThrough();
    source.write('x');
    const done = upload(sandbox, '/full', source, LIMITS, NEVER);
    await expect(done).rejects.toMatchObject({ code: 'disk_full' });
    expect(source.destroyed).toBe(false);
  });

  it('ends with the sandbox', async () => {
    const source = new PassThrough();
    source.write('x');
    const done = upload(sandbox, '/f', source, LIMITS, NEVER);
    const outcome = expect(done).rejects.toMatchObject({ code: 'sandbox_not_running' });
    await sandbox.end('deleted');
    await outcome;
  });
});

describe('download', () => {
  it('counts as activity until it has been read', async () => {
    vm.files.set('/f', Buffer.from('abc'));
    const { size, body } = await download(sandbox, '/f', LIMITS, NEVER);
    expect(size).toBe(3);
    expect(isIdle()).toBe(false);
    expect((await buffer(body)).toString()).toBe('abc');
    await expect.poll(() => isIdle()).toBe(true);
  });

  it.each(['reader', 'guest'])('is aborted when the %s stalls', async (who) => {
    const stream =
      who === 'reader'
        ? Readable.from(Array.from({ length: 100 }, () => Buffer.alloc(100_000)))
        : new Readable({ read() {} });
    vm.download = async () => ({ size: 10_000_000, stream });
    const { body } = await download(sandbox, '/f', IMPATIENT, NEVER);
    const failed = Promise.withResolvers<Error>();
    body.on('error', failed.resolve);
    expect(await failed.promise).toMatchObject({ code: 'guest_unresponsive' });
    await expect.poll(() => stream.destroyed && isIdle()).toBe(true);
  });

  it('ends when the caller disconnects', async () => {
    const caller = new AbortController();
    vm.download = async () => ({ size: 1, stream: new Readable({ read() {} }) });
    const { body } = await download(sandbox, '/f', LIMITS, caller.signal);
    body.on('error', () => undefined);
    caller.abort(new Error('left'));
    await expect.poll(() => body.destroyed && isIdle()).toBe(true);
  });
});
