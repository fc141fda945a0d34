import { beforeEach, expect, it } from 'vitest';
import { MemoryHost, STANDARD } from '../../../test/memory-host.ts';
import { Rooms } from '../../../test/rooms.ts';
import { silentLogger } from '../../../test/silent-logger.ts';
import { until } from '../../../test/until.ts';
import { agentShapes } from './agent-shapes.ts';
import { ShapePreparer } from './shape-preparer.ts';

const LARGE = { vcpu: 1, memoryMib: 1024 };
let host: MemoryHost;
let rooms: Rooms;
let stop: AbortController;

beforeEach(() => {
  host = new MemoryHost();
  rooms = new Rooms(host, { pool: { standard: 1 } });
  stop = new AbortController();
});

function prepare(shapes: (typeof LARGE)[] = [LARGE]): Promise<void> {
  const preparer = new ShapePreparer({
    host,
    shapes: () => shapes,
    images: () => host.images(),
    pool: rooms.pool,
    capacity: rooms.capacity,
    foreground: rooms.foreground,
    logger: silentLogger,
    pollMs: 5,
    firstBackoffMs: 2,
  });
  return preparer.run(stop.signal);
}

it('prepares each shape once, of the images that are kept ready', async () => {
  await rooms.fillPool();
  host.currentImages = [STANDARD, { ...STANDARD, template: 'another', rootfs: 'another.img' }];
  await prepare([LARGE, { vcpu: 2, memoryMib: 512 }]);
  expect(host.prepared).toEqual([
    { template: 'standard', ...LARGE },
    { template: 'standard', vcpu: 2, memoryMib: 512 },
  ]);
});

it('waits until the pool is full and nobody waits for anything', async () => {
  const done = prepare();
  const gate = Promise.withResolvers<void>();
  const busy = rooms.foreground.run(() => gate.promise);
  expect(host.prepared).toEqual([]);
  gate.resolve();
  await busy;
  expect(host.prepared).toEqual([]);
  await rooms.fillPool();
  await done;
  expect(host.prepared).toHaveLength(1);
});

it('waits while memory is short', async () => {
  await rooms.fillPool();
  host.memoryMib = 100;
  const done = prepare();
  await new Promise((resolve) => setImmediate(resolve));
  expect(host.prepared).toEqual([]);
  host.memoryMib = 16_384;
  await done;
  expect(host.prepared).toHaveLength(1);
});

it('tries again after a failure, a few times', async () => {
  await rooms.fillPool();
  host.prepareFailure = () => new Error('no');
  await prepare();
  expect(host.prepared).toHaveLength(5);
  host.prepareFailure = () => (host.prepared.length < 7 ? new Error('no') : undefined);
  await prepare();
  expect(host.prepared).toHaveLength(7);
});

it('ends at once when it is told to', async () => {
  const done = prepare();
  stop.abort();
  await done;
  await until(() => expect(host.prepared).toEqual([]));
});

it('knows the shapes of the agents', () => {
  expect(agentShapes(STANDARD)).toEqual([LARGE]);
  expect(agentShapes(LARGE)).toEqual([]);
});
