import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { TenantOperations } from './tenant-operations.ts';

const place = (tenantId: string, workerId?: string) => ({ tenantId, workerId });
const full = expect.objectContaining({ code: 'too_many_operations' });

test('a stream holds its slot until it has ended or is cut off', async () => {
  const operations = new TenantOperations(1);
  const begin = (body = new PassThrough()) =>
    operations.stream(place('t'), async () => ({ body, contentLength: undefined }));
  for (const end of ['end', 'destroy'] as const) {
    const body = new PassThrough();
    await begin(body);
    await expect(begin()).rejects.toThrow(full);
    await expect(operations.run(place('t'), async () => 1)).rejects.toThrow(full);
    await operations.run(place('other'), async () => 1);
    body[end]();
    body.resume();
    await once(body, 'close');
  }
  const failing = operations.stream(place('t'), async () => {
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect(await operations.run(place('t'), async () => 1)).toBe(1);
});

test('a tenant has its part of each worker, however many others have all that they can there', async () => {
  const operations = new TenantOperations(64);
  const bodies: PassThrough[] = [];
  const begin = (tenantId: string, workerId: string) =>
    operations.stream(place(tenantId, workerId), async () => {
      const body = new PassThrough();
      bodies.push(body);
      return { body, contentLength: undefined };
    });
  const beginAll = async (tenantId: string) => {
    for (let begun = 0; begun <= 64; begun += 1) {
      const refusal = await begin(tenantId, 'w1').then(
        () => undefined,
        (error: unknown) => error,
      );
      if (refusal === undefined) continue;
      expect(refusal).toEqual(full);
      return begun;
    }
    throw new Error('there was no limit');
  };
  expect(await beginAll('first')).toBe(64);
  for (let index = 0; index < 60; index += 1) await beginAll(`t${index}`);
  expect(await beginAll('other')).toBe(8);
  // An operation that fails before it has begun gives its slot back.
  const failing = operations.run(place('another', 'w1'), () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  expect(await beginAll('another')).toBe(8);
  await expect(begin('other', 'w1')).rejects.toThrow('The worker of this sandbox is busy');
  await begin('other', 'w2');
  const ended = Promise.allSettled(bodies.map((body) => finished(body)));
  for (const body of bodies) body.destroy();
  await ended;
  expect(await beginAll('last')).toBe(64);
});
