import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type CertificatePair, createSelfSigned } from '@svc/service-kit/tls';
import type { FleetWorker, OpenFleet, ServerState } from '@svc/store';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { controlPlaneFindings } from './control-planes.ts';
import { askDatabase, databaseFindings } from './database.ts';
import { runtimeHostFindings } from './runtime-hosts.ts';
import { workerFindings } from './workers.ts';

const MINUTE_MS = 60_000;

let pair: CertificatePair;
let machine: Server;
let url: string;
/** By how much its clock is ahead. */
let aheadMs: number;

beforeAll(async () => {
  pair = await createSelfSigned({ commonName: 'w1', names: ['127.0.0.1'], days: 100 });
  machine = createServer(pair, (_request, response) => {
    response.setHeader('date', new Date(Date.now() + aheadMs).toUTCString());
    response.writeHead(401).end();
  }).listen(0, '127.0.0.1');
  await once(machine, 'listening');
  url = `https://127.0.0.1:${(machine.address() as AddressInfo).port}`;
});
afterAll(async () => {
  machine.close();
  await once(machine, 'close');
});
beforeEach(() => {
  aheadMs = 0;
});

function worker(changes: Partial<FleetWorker> = {}): FleetWorker {
  return {
    worker_id: 'w1',
    standing: 'ready',
    cordoned: false,
    url,
    certificate: pair.cert,
    version: '1',
    sandboxes: 2,
    memory_mib: 4096,
    reserved_memory_mib: 1024,
    free_disk_mib: 10_000,
    templates: [],
    last_seen_at: new Date('2026-01-01T00:00:00Z'),
    is_contested: false,
    ...changes,
  };
}

/** A server whose state is this. */
const server = (changes: Partial<ServerState> = {}) =>
  ({
    read: async (): Promise<ServerState> => ({
      version: '17.6',
      now: new Date(),
      readOnly: false,
      connections: 10,
      maxConnections: 100,
      waitsForStandby: false,
      ...changes,
    }),
  }) as OpenFleet['server'];

const examine = async (...workers: FleetWorker[]) => {
  const fleet = { list: async () => workers } as OpenFleet['fleet'];
  return workerFindings({ fleet }, await askDatabase({ server: server() }));
};

test('a whole fleet is described in one line', async () => {
  expect(await examine(worker())).toEqual([
    {
      name: 'workers',
      verdict: 'ok',
      detail: '1, with 2 sandbox(es), and 1.0 GiB of 4.0 GiB promised',
    },
  ]);
});

test('a fleet without workers fails', async () => {
  expect(await examine()).toMatchObject([{ verdict: 'fail', detail: 'none has registered' }]);
});

const nowhere = { url: 'https://127.0.0.1:1' };

test.each<[string, Partial<FleetWorker>, 'warn' | 'fail', RegExp]>([
  [
    'silent, and gone',
    { standing: 'unreachable', ...nowhere },
    'fail',
    /w1 is silent since 2026-01-01T.* and does not answer at /,
  ],
  [
    'silent, but there',
    { standing: 'unreachable' },
    'fail',
    /w1 is silent since .*, but answers here/,
  ],
  ['reporting, but not there', nowhere, 'fail', /w1 sends heartbeats, but does not answer at /],
  ['cordoned', { standing: 'cordoned' }, 'warn', /w1 is cordoned/],
  [
    'asked for by another machine',
    { is_contested: true },
    'fail',
    /another machine wants the id of w1/,
  ],
  ['short of disk', { free_disk_mib: 500 }, 'fail', /w1 has only 500 MiB of disk left to promise/],
  [
    'without an image',
    { templates: [{ template: 'cua', image: 'i', ready: false, vcpu: 1, memory_mib: 1024 }] },
    'warn',
    /w1 has no image of cua ready/,
  ],
])('a worker that is %s is named in one line', async (_, changes, verdict, detail) => {
  expect(await examine(worker(changes))).toEqual([
    { name: 'worker', verdict, detail: expect.stringMatching(detail), mend: expect.any(String) },
  ]);
});

test('a worker of another version is named', async () => {
  const old = worker({ worker_id: 'w2', version: '0' });
  expect(await examine(worker(), worker(), old)).toMatchObject([
    { verdict: 'warn', detail: 'w2 runs 0, others 1' },
  ]);
});

test('a worker that presents another certificate does not count as answering', async () => {
  const other = await createSelfSigned({ commonName: 'w1', names: ['127.0.0.1'], days: 100 });
  expect(await examine(worker({ certificate: other.cert }))).toMatchObject([
    { verdict: 'fail', detail: expect.stringContaining('does not answer') },
  ]);
});

test('a certificate that ends soon is named', async () => {
  const brief = await createSelfSigned({ commonName: 'w1', names: ['127.0.0.1'], days: 5 });
  expect(await examine(worker({ certificate: brief.cert, ...nowhere }))).toMatchObject([
    { verdict: 'warn', detail: expect.stringContaining('the certificate of w1 is valid until') },
    { verdict: 'fail' },
  ]);
});

test('a clock that is a minute off is named, whether it is ahead or behind', async () => {
  aheadMs = MINUTE_MS;
  const [ahead] = await examine(worker());
  expect(ahead?.detail).toMatch(/^the clock of w1 is (59|60) s ahead of that of the database$/);
  aheadMs = -MINUTE_MS;
  const [behind] = await examine(worker());
  expect(behind?.detail).toMatch(/^the clock of w1 is (60|61) s behind that of the database$/);
});

test('most workers silent at once is a fault of what they share', async () => {
  const silent = { standing: 'unreachable' } as const;
  const [first] = await examine(worker(silent), worker({ ...silent }), worker());
  expect(first).toMatchObject({ name: 'workers', verdict: 'fail' });
  expect(first?.detail).toContain('2 of 3 are silent');
});

test.each<[string, Partial<ServerState>, string, string]>([
  ['a standby', { readOnly: true }, 'fail', 'takes no writes'],
  ['without its standby', { waitsForStandby: true }, 'fail', 'no synchronous standby'],
  ['nearly full', { connections: 95 }, 'warn', '95 of 100 connections'],
  ['with a clock behind', { now: new Date(Date.now() - MINUTE_MS) }, 'warn', 'of this machine is'],
])('a database that is %s is named', async (_, changes, verdict, detail) => {
  const found = databaseFindings(await askDatabase({ server: server(changes) }));
  expect(found).toContainEqual(
    expect.objectContaining({ verdict, detail: expect.stringContaining(detail) }),
  );
});

test('control planes that are silent, missing or of an earlier version are named', async () => {
  const examineAll = (...listed: [id: string, silent: number, knows: string[]][]) =>
    controlPlaneFindings({
      controlPlanes: {
        list: async () =>
          listed.map(([control_plane_id, silent_seconds, knows]) => ({
            control_plane_id,
            silent_seconds,
            knows,
          })),
      },
    });
  expect(await examineAll(['a', 1, ['1']], ['b', 2, ['1']])).toMatchObject([
    { verdict: 'ok', detail: '2 running' },
  ]);
  expect(await examineAll(['a', 1, ['1', '2']], ['b', 2, ['1']], ['c', 20, ['1']])).toMatchObject([
    { verdict: 'warn', detail: expect.stringContaining('c ended without a shutdown 20 s ago') },
    { verdict: 'warn', detail: '1 of 2 run an earlier version' },
  ]);
  expect(await examineAll()).toMatchObject([{ verdict: 'fail', detail: 'none is running' }]);
});

test('a runtime host that fell silent is named, and so is a fleet without any', async () => {
  const hosts = (...list: { name: string; silent_seconds: number }[]) =>
    runtimeHostFindings({ runtimeHosts: { list: async () => list } });
  const alive = { name: 'a:8444', silent_seconds: 3 };
  const dead = { name: 'b:8444', silent_seconds: 40 };
  expect(await hosts(alive)).toEqual([
    { name: 'runtime hosts', verdict: 'ok', detail: '1 running' },
  ]);
  expect(await hosts(alive, dead)).toMatchObject([
    {
      verdict: 'warn',
      detail: expect.stringContaining('b:8444 ended without a shutdown 40 s ago'),
    },
    { verdict: 'ok' },
  ]);
  expect(await hosts()).toMatchObject([
    { verdict: 'warn', detail: expect.stringContaining('none reports') },
  ]);
});
