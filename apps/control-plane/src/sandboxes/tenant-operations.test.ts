import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { TenantOperations } from './tenant-operations.ts';

const full = expect.objectContaining({ code: 'too_many_operations' });

test('a stream holds its slot until it has ended or is cut off', async () => {
  const operations = new TenantOperations(1);
  const begin = (body = new PassThrough()) =>
    operations.stream('t', async () => ({ body, contentLength: undefined }));
  for (const end of ['end', 'destroy'] as const) {
    const body = new PassThrough();
    await begin(body);
    await expect(begin()).rejects.toThrow(full);
    await expect(operations.run('t', async () => 1)).rejects.toThrow(full);
    await operations.run('other', async () => 1);
    body[end]();
    body.resume();
    await once(body, 'close');
  }
  const failing = operations.stream('t', async () => {
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect(await operations.run('t', async () => 1)).toBe(1);
});
