import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, test, vi } from 'vitest';
import { TenantOperations } from './tenant-operations.ts';

const place = (tenantId: string, workerId?: string) => ({ tenantId, workerId });
const full = expect.objectContaining({ code: 'too_many_operations' });

test('a stream holds its slot until it has ended or is cut off', async () => {
  const operations = new TenantOperations({ perTenant: 1, perWorker: 8 });
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

test('a tenant has a share of each worker, of which operations that fail or end give back their part', async () => {
  const operations = new TenantOperations({ perTenant: 64, perWorker: 10 });
  const bodies: PassThrough[] = [];
  const begin = (tenantId: string, workerId: string) =>
    operations.stream(place(tenantId, workerId), async () => {
      const body = new PassThrough();
      bodies.push(body);
      return { body, contentLength: undefined };
    });
  // A quarter of what is free.
  await begin('t', 'w1');
  await begin('t', 'w1');
  for (let time = 0; time < 10; time += 1) {
    await expect(begin('t', 'w1')).rejects.toThrow('The worker of this sandbox is busy');
    const failing = operations.run(place('other', 'w1'), () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
  }
  await begin('other', 'w1');
  await begin('t', 'w2');
  for (const body of bodies) body.destroy();
  await vi.waitFor(() => begin('t', 'w1'));
  await vi.waitFor(() => begin('t', 'w1'));
});
