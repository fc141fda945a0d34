import { beforeEach, expect, it } from 'vitest';
import { CoreHarness } from '../../../test/core-harness.ts';
import { MemoryHost, STANDARD } from '../../../test/memory-host.ts';
import { silentLogger } from '../../../test/silent-logger.ts';
import { ShapePreparer } from './shape-preparer.ts';

const LARGE = { vcpu: 1, memoryMib: 1024 };
let host: MemoryHost;
let core: CoreHarness;
let stop: AbortController;

beforeEach(() => {
  host = new MemoryHost();
  core = new CoreHarness(host, { pool: { standard: 1 } });
  stop = new AbortController();
});

function prepare(shapes: (typeof LARGE)[] = [LARGE]): Promise<void> {
  const preparer = new ShapePreparer({
    host,
    shapes: () => shapes,
    images: () => host.images(),
    pool: core.pool,
    capacity: core.capacity,
    foreground: core.foreground,
    logger: silentLogger,
    pollMs: 5,
    firstBackoffMs: 2,
  });
  return preparer.run(stop.signal);
}

it('prepares each shape once, for the templates in the pool', async () => {
  await core.fillPool();
  host.currentImages = [STANDARD, { ...STANDARD, template: 'another', rootfs: 'another.img' }];
  await prepare([LARGE, { vcpu: 2, memoryMib: 512 }]);
  expect(host.prepared).toEqual([
    { template: 'standard', ...LARGE },
    { template: 'standard', vcpu: 2, memoryMib: 512 },
  ]);
});

it('waits until the pool is full and no caller waits', async () => {
  const done = prepare();
  const gate = Promise.withResolvers<void>();
  const busy = core.foreground.run(() => gate.promise);
  expect(host.prepared).toEqual([]);
  gate.resolve();
  await busy;
  expect(host.prepared).toEqual([]);
  await core.fillPool();
  await done;
  expect(host.prepared).toHaveLength(1);
});

it('waits while memory is short', async () => {
  await core.fillPool();
  host.memoryMib = 100;
  const done = prepare();
  await new Promise((resolve) => setImmediate(resolve));
  expect(host.prepared).toEqual([]);
  host.memoryMib = 16_384;
  await done;
  expect(host.prepared).toHaveLength(1);
});

it('retries a failed shape a few times', async () => {
  await core.fillPool();
  host.prepareFailure = () => new Error('no');
  await prepare();
  expect(host.prepared).toHaveLength(5);
  host.prepareFailure = () => (host.prepared.length < 7 ? new Error('no') : undefined);
  await prepare();
  expect(host.prepared).toHaveLength(7);
});

it('stops when its signal aborts', async () => {
  const done = prepare();
  stop.abort();
  await done;
  await expect.poll(() => host.prepared).toEqual([]);
});
