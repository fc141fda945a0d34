import { Readable } from 'node:stream';
import {
  OCTET_STREAM_MEDIA_TYPE,
  PROBLEM_MEDIA_TYPE,
  type RegisterWorkerRequest,
  type WorkerSandbox,
} from '@svc/contract';
import { formatEvent } from '@svc/service-kit';
import type { Lie, Operation, WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Answer, Harness, sessionRequest } from '../../test/harness.ts';

let harness: Harness;
let account: Awaited<ReturnType<Harness['signUp']>>;
let worker: WorkerDouble;

beforeAll(async () => {
  harness = await Harness.start();
  account = await harness.signUp();
  await harness.addBundle(account.key, 'llm', { LLM_API_KEY: 'k' });
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  worker = await harness.addWorker('w1');
});

const BAD = { status: 502, body: { code: 'worker_bad_response' } };
const WITH_AGENT = { agent: 'claude-code', llm_key: 'k' };
const EVENTS = { accept: 'text/event-stream' };

const json =
  (value: unknown, status = 200): Lie =>
  () => ({ status, body: JSON.stringify(value) });
const changed =
  (changes: object): Lie =>
  (truth) => ({ body: JSON.stringify({ ...(truth as object), ...changes }) });
const problem = (code: string, status: number, extra: object = {}): Lie => {
  const body = { type: 't', title: 't', status, detail: 'd', code, request_id: 'r', ...extra };
  return () => ({ status, type: PROBLEM_MEDIA_TYPE, body: JSON.stringify(body) });
};
/** A body that starts with `head` and never ends. */
const endless = (head: string): Readable => {
  const filler = 'x'.repeat(65_536);
  const body = new Readable({ read: () => void body.push(filler) });
  body.push(head);
  return body;
};

/** Answers that no operation with a JSON answer may give. */
const NONSENSE: readonly [what: string, lie: Lie][] = [
  ['broken JSON', () => ({ body: '{"vm_id":' })],
  ['no body', () => ({ body: '' })],
  ['null', json(null)],
  ['a list', json([])],
  ['a string', json('ok')],
  ['another media type', (truth) => ({ type: 'text/html', body: JSON.stringify(truth) })],
  ['an endless body', () => ({ body: endless('{"a":"') })],
  ['a redirect', () => ({ status: 302, body: '' })],
  ['an error as text', () => ({ status: 500, type: 'text/plain', body: 'oops' })],
  ['an error as plain JSON', json({ code: 'no_capacity' }, 409)],
  ['a problem that is cut off', () => ({ status: 409, type: PROBLEM_MEDIA_TYPE, body: '{' })],
  ['an endless problem', () => ({ status: 409, type: PROBLEM_MEDIA_TYPE, body: endless('') })],
  ['an unknown error code', problem('on_fire', 500)],
  ['an error code with another status', problem('sandbox_not_found', 409)],
  ['a detail that is not text', problem('sandbox_not_found', 404, { detail: 7 })],
  ['an error code that workers do not have', problem('session_of_another_tenant', 403)],
];

const on = (path: string, method: string, call: object = {}, vmId = '') =>
  harness.call(method, `/v1/sandboxes${vmId && `/${vmId}`}${path}`, { key: account.key, ...call });
const record = async (vmId: string) => (await on('', 'GET', {}, vmId)).body;
const ledger = async (): Promise<Record<string, unknown>[]> =>
  (await harness.sql.query('select * from sandboxes order by vm_id')).rows;
const activeSandboxes = async () =>
  (await harness.sql.query('select active_sandboxes from tenants')).rows[0]?.active_sandboxes;
const reserved = async () =>
  (await harness.sql.query('select reserved_memory_mib from workers')).rows[0]?.reserved_memory_mib;
const second = async () => {
  const other = await harness.addWorker('w2', (w) => {
    w.memoryMib = 256;
  });
  return other;
};

/** The log lines about bad answers since the last call. */
function complaints(): Record<string, unknown>[] {
  return harness.logLines
    .splice(0)
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'invalid response from a worker');
}

const OPERATIONS: readonly [Operation, string, (vmId: string) => Promise<Answer>][] = [
  [
    'exec',
    'POST /sandboxes/{id}/exec',
    (id) => on('/exec', 'POST', { json: { command: 'x' } }, id),
  ],
  [
    'exec',
    'POST /sandboxes/{id}/exec',
    (id) => on('/exec', 'POST', { json: { command: 'x' }, headers: EVENTS }, id),
  ],
  ['logs', 'GET /sandboxes/{id}/logs', (id) => on('/logs', 'GET', {}, id)],
  ['download', 'GET /sandboxes/{id}/files', (id) => on('/files?path=/a', 'GET', {}, id)],
  [
    'upload',
    'POST /sandboxes/{id}/files',
    (id) =>
      on(
        '/files?path=/b',
        'POST',
        { raw: 'x', headers: { 'content-type': OCTET_STREAM_MEDIA_TYPE } },
        id,
      ),
  ],
  ['cancel', 'POST /sandboxes/{id}/cancel', (id) => on('/cancel', 'POST', {}, id)],
  ['pause', 'POST /sandboxes/{id}/pause', (id) => on('/pause', 'POST', {}, id)],
  ['resume', 'POST /sandboxes/{id}/resume', (id) => on('/resume', 'POST', {}, id)],
  ['destroy', 'DELETE /sandboxes/{id}', (id) => on('', 'DELETE', {}, id)],
];

describe('an answer that breaks the contract', () => {
  test.each(OPERATIONS)(
    'to %s (%s) is 502, is logged, and does not change the ledger',
    async (operation, route, call) => {
      const vmId = await harness.create(account.key, operation === 'logs' ? WITH_AGENT : {});
      worker.files.set('/a', Buffer.from('bytes'));
      const [before] = await ledger();
      for (const [what, lie] of NONSENSE) {
        complaints();
        worker.lies.set(operation, lie);
        expect(await call(vmId), what).toMatchObject(BAD);
        expect(complaints(), what).toEqual([
          expect.objectContaining({ workerId: 'w1', route, problem: expect.any(String) }),
        ]);
      }
      const [after] = await ledger();
      expect({ ...after, delete_requested_at: null }).toEqual(before);
      worker.lies.clear();
      expect((await call(vmId)).status).toBe(200);
    },
  );

  test('to a creation is 502 and leaves nothing behind', async () => {
    for (const [what, lie] of NONSENSE) {
      worker.lies.set('create', lie);
      const answer = await on('', 'POST', { json: { template: 'standard' } });
      expect(answer, what).toMatchObject(BAD);
    }
    expect(await ledger()).toEqual([]);
    expect(await activeSandboxes()).toBe(0);
    expect(await reserved()).toBe(0);
    // The next heartbeat has the worker destroy the sandboxes that it made all the same.
    const { destroy } = (await (await worker.heartbeat(harness.plane.url)).json()) as {
      destroy: { vm_id: string }[];
    };
    expect(destroy.map((order) => order.vm_id).sort()).toEqual([...worker.sandboxes.keys()].sort());
  });

  test('to the start of a session is 502 and leaves no session', async () => {
    for (const [what, lie] of NONSENSE) {
      worker.lies.set('create', lie);
      const answer = await harness.call('POST', '/v1/sessions', {
        key: account.key,
        json: sessionRequest(),
      });
      expect(answer, what).toMatchObject(BAD);
    }
    expect((await harness.sql.query('select 1 from sessions')).rowCount).toBe(0);
    expect(await ledger()).toEqual([]);
  });

  test('makes a list partial, with the last known records', async () => {
    const vmId = await harness.create(account.key);
    const known = await record(vmId);
    worker.change(vmId, { state: 'paused' });
    const lies: typeof NONSENSE = [
      ...NONSENSE,
      ['no list', json({ sandboxes: 'none' })],
      ['a state that is no text', json({ sandboxes: [reportOf(vmId, { state: 7 })] })],
      [
        'a sandbox of another tenant',
        json({ sandboxes: [reportOf(vmId, { tenant_id: 'usr_x' })] }),
      ],
      ['a refusal without a problem', () => ({ status: 401, type: 'text/plain', body: 'no' })],
      [
        'more than a tenant may have',
        json({ sandboxes: Array.from({ length: 2_000 }, () => reportOf(vmId)) }),
      ],
    ];
    for (const [what, lie] of lies) {
      complaints();
      worker.lies.set('list', lie);
      const answer = await on('', 'GET');
      expect(answer, what).toMatchObject({ status: 200 });
      expect(answer.body, what).toEqual({ partial: true, sandboxes: [known] });
      expect(complaints(), what).toHaveLength(1);
    }
  });

  test('to a creation makes the control plane try the next worker', async () => {
    await harness.addWorker('w2', (w) => {
      w.memoryMib = 1024;
    });
    worker.lies.set('create', () => ({ body: 'nonsense' }));
    const answer = await on('', 'POST', { json: { template: 'standard' } });
    expect(answer.status).toBe(201);
    expect(await ledger()).toMatchObject([{ worker_id: 'w2', state: 'running' }]);
  });
});

describe('a well-formed but false answer', () => {
  test.each<[string, object]>([
    ['another vm_id', { vm_id: `vm_${'0'.repeat(32)}` }],
    ['another generation', { generation: 7 }],
    ['another tenant', { tenant_id: 'usr_other' }],
    ['a sandbox that is still booting', { state: 'booting' }],
    ['a state that is no text', { state: 7 }],
    ['a port that does not exist', { host_port: 70_000 }],
    ['a size out of range', { vcpu: 2 ** 40 }],
    ['text that the database cannot store', { rootfs: 'a\0b' }],
    ['an impossible time', { running_at: 'yesterday' }],
  ])('to a creation is 502: %s', async (_what, changes) => {
    worker.lies.set('create', changed(changes));
    expect(await on('', 'POST', { json: { template: 'standard' } })).toMatchObject(BAD);
    expect(await ledger()).toEqual([]);
  });

  test.each<[Operation, string]>([
    ['pause', '/pause'],
    ['resume', '/resume'],
    ['destroy', ''],
  ])('to %s cannot change another sandbox', async (operation, path) => {
    const [vmId, victim] = [await harness.create(account.key), await harness.create(account.key)];
    const before = await record(victim);
    worker.lies.set(operation, json(reportOf(victim, { state: 'paused', revision: 99 })));
    const method = operation === 'destroy' ? 'DELETE' : 'POST';
    expect(await on(path, method, {}, vmId)).toMatchObject(BAD);
    expect(await record(victim)).toEqual(before);
  });

  test('to a deletion keeps the sandbox on record until its worker has destroyed it', async () => {
    const vmId = await harness.create(account.key);
    const running = reportOf(vmId);
    worker.lies.set('destroy', json(running));
    expect(await on('', 'DELETE', {}, vmId)).toMatchObject(BAD);
    expect(await record(vmId)).toMatchObject({ state: 'running' });
    worker.sandboxes.set(vmId, running);
    const answer = await (await worker.heartbeat(harness.plane.url)).json();
    expect(answer).toEqual({ destroy: [{ vm_id: vmId, generation: 1, reason: 'deleted' }] });
  });

  test('to cancel is 502 when it names another sandbox or reason', async () => {
    const vmId = await harness.create(account.key);
    for (const lie of [changed({ vm_id: 'vm_other' }), changed({ reason: 'timeout' })]) {
      worker.lies.set('cancel', lie);
      expect(await on('/cancel', 'POST', {}, vmId)).toMatchObject(BAD);
    }
  });

  test('with a log is 502 when its end is longer than itself, or than any tail', async () => {
    const vmId = await harness.create(account.key, WITH_AGENT);
    const log = (bytes: number, total_bytes: number) =>
      json({ end: Buffer.alloc(bytes).toString('base64'), total_bytes });
    for (const lie of [log(2, 1), log(1_048_577, 2_000_000)]) {
      worker.lies.set('logs', lie);
      expect(await on('/logs', 'GET', {}, vmId)).toMatchObject(BAD);
    }
  });

  test('in a list does not change the sandbox of another worker', async () => {
    const vmId = await harness.create(account.key);
    const liar = await harness.addWorker('w2', (w) => {
      w.memoryMib = 100_000;
    });
    const own = await harness.create(account.key);
    expect(liar.sandboxes.has(own)).toBe(true);
    const forged = reportOf(vmId, { endpoint: '203.0.113.66', host_port: 666, revision: 99 });
    liar.lies.set('list', json({ sandboxes: [forged] }));
    const { text } = await on('', 'GET');
    expect(text).not.toContain('203.0.113.66');
  });
});

describe('a stream', () => {
  const stream = async (vmId: string) =>
    on('/exec', 'POST', { json: { command: 'x' }, headers: EVENTS }, vmId);
  const EXIT = formatEvent('exit', { exit_code: 0, duration_ms: 1, truncated: false });
  const events =
    (body: string | Readable): Lie =>
    () => ({ type: 'text/event-stream', body });

  test.each<[string, () => string | Readable]>([
    ['an unknown event', () => formatEvent('reboot', {}) + EXIT],
    ['data that is not JSON', () => `event: stdout\ndata: {\n\n${EXIT}`],
    ['data of another form', () => formatEvent('stdout', { data: 7 }) + EXIT],
    ['an exit code that is not a number', () => formatEvent('exit', { exit_code: '0' })],
    ['lines that are not events', () => `hello\n\n${EXIT}`],
    ['an endless event', () => endless('event: stdout\ndata: ')],
    ['an unknown error code', () => formatEvent('error', { code: 'on_fire', message: 'm' })],
    ['an end without an exit', () => formatEvent('stdout', { data: 'a' })],
    ['an event that is cut off', () => `${formatEvent('stdout', { data: 'a' })}event: std`],
    ['events after the exit', () => EXIT + formatEvent('stdout', { data: 'a' })],
  ])('of events ends with an error at %s', async (_what, body) => {
    const vmId = await harness.create(account.key);
    complaints();
    worker.lies.set('exec', events(body()));
    const { status, text } = await stream(vmId);
    expect(status).toBe(200);
    expect(text).toMatch(
      /event: error\ndata: \{"code":"worker_bad_response","message":".+"\}\n\n$/,
    );
    expect(text).not.toMatch(/reboot|hello/);
    expect(complaints()).toHaveLength(1);
  });

  test('of events ends on the worker when the caller leaves', async () => {
    const vmId = await harness.create(account.key);
    const source = new Readable({ read: () => undefined });
    source.push(formatEvent('stdout', { data: 'a' }));
    worker.lies.set('exec', events(source));
    const controller = new AbortController();
    const call = on(
      '/exec',
      'POST',
      { json: { command: 'x' }, headers: EVENTS, signal: controller.signal },
      vmId,
    );
    const outcome = expect(call).rejects.toThrow();
    await expect.poll(() => source.readableLength).toBe(0);
    controller.abort();
    await outcome;
    await expect.poll(() => source.destroyed).toBe(true);
  });

  test('of valid events passes unchanged, however it is split into chunks', async () => {
    const vmId = await harness.create(account.key);
    const error = formatEvent('error', { code: 'sandbox_not_running', message: 'It ended.' });
    for (const last of [EXIT, error]) {
      const honest = `${formatEvent('stdout', { data: 'é\n' })}: keepalive\n\n${formatEvent('stderr', { data: '' })}${last}`;
      const pieces = [...Buffer.from(honest)].map((byte) => Buffer.of(byte));
      worker.lies.set('exec', events(Readable.from(pieces, { objectMode: false })));
      expect((await stream(vmId)).text).toBe(honest);
    }
  });
});

describe('a report that breaks the contract', () => {
  const WRONG: readonly [what: string, changes: Record<string, unknown>][] = [
    ['a state that is no text', { state: 7 }],
    ['a reason that the database cannot store', { end_reason: 'a\0' }],
    ['a generation out of range', { generation: 2 ** 31 }],
    ['a revision out of range', { revision: 2 ** 31 }],
    ['a size out of range', { vcpu: 2 ** 40 }],
    ['a negative size', { disk_mib: -1 }],
    ['a port that does not exist', { host_port: 70_000 }],
    ['text that the database cannot store', { rootfs: 'a\0b' }],
    ['half a surrogate pair', { endpoint: '\ud800' }],
    ['an endless id', { vm_id: 'x'.repeat(5000) }],
    ['an impossible time', { running_at: '0000-01-01T00:00:00.000Z' }],
    ['an exit code out of range', { agent_exit_code: 2 ** 40 }],
  ];

  test.each(WRONG)('is rejected without a change of the ledger: %s', async (_what, changes) => {
    const vmId = await harness.create(account.key);
    const before = await ledger();
    const sandboxes = [{ ...reportOf(vmId), state: 'paused', revision: 99, ...changes }];
    const { url } = harness.plane;
    for (const answer of [
      await worker.heartbeat(url, 'w1', { sandboxes }),
      await worker.register(url, { sandboxes }),
      await worker.event(url, ...(sandboxes as WorkerSandbox[])),
    ]) {
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ code: 'validation_failed' });
    }
    expect(await ledger()).toEqual(before);
  });

  test('may contain unknown fields, which are ignored', async () => {
    const vmId = await harness.create(account.key);
    const report = { ...worker.change(vmId, { state: 'paused' }), extra: 'a\0\ud800' };
    expect((await worker.event(harness.plane.url, report)).status).toBe(204);
    expect(await record(vmId)).toMatchObject({ state: 'paused' });
  });

  test.each<[string, Partial<Record<keyof RegisterWorkerRequest, unknown>>]>([
    ['a certificate that is not PEM', { certificate: 'nonsense' }],
    [
      'a PEM block that is not a certificate',
      { certificate: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' },
    ],
    ['an address that is not a URL', { url: 'here' }],
    ['an address without TLS', { url: 'http://127.0.0.1:1' }],
    ['an address with a path', { url: 'https://127.0.0.1:1/x' }],
    ['an address with a password', { url: 'https://a:b@127.0.0.1:1' }],
    ['a version that the database cannot store', { version: 'a\0' }],
    ['a capacity out of range', { capacity: { vcpu: 1, memory_mib: 2 ** 40, disk_mib: 1 } }],
    [
      'a template that the database cannot store',
      { templates: [{ template: 'a\0', image: '', ready: true }] },
    ],
  ])('does not register the worker: %s', async (_what, changes) => {
    const before = (await harness.sql.query('select * from workers')).rows;
    const answer = await worker.register(harness.plane.url, changes);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ code: 'validation_failed' });
    expect((await harness.sql.query('select * from workers')).rows).toEqual(before);
  });

  test('cannot end a sandbox of another worker', async () => {
    const vmId = await harness.create(account.key);
    const liar = await second();
    const forged = reportOf(vmId, {
      state: 'destroyed',
      end_reason: 'deleted',
      ended_at: new Date().toISOString(),
    });
    expect((await liar.event(harness.plane.url, forged)).status).toBe(204);
    expect((await liar.heartbeat(harness.plane.url, 'w2', { sandboxes: [forged] })).status).toBe(
      200,
    );
    expect(await record(vmId)).toMatchObject({ state: 'running' });
  });

  test.each<[string, Record<string, unknown>]>([
    ['a generation out of range', { generation: 2 ** 31 }],
    ['a number out of range', { first_seq: 2 ** 60, last_seq: 2 ** 60 }],
    ['files that the database cannot store', { files_id: 'a\0' }],
  ])('does not commit a turn: %s', async (_what, changes) => {
    const session = await harness.startSession(account.key);
    const turn = { generation: 1, vm_id: session.vmId, first_seq: 1, last_seq: 1, frames: '{}\n' };
    const answer = await worker.ask(harness.plane.url, 'POST', `/sessions/${session.id}/turns`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...turn, ...changes }),
    });
    expect(answer.status).toBe(400);
  });
});

function reportOf(vmId: string, changes: object = {}): WorkerSandbox {
  const report = harness.workers.map((one) => one.sandboxes.get(vmId)).find(Boolean);
  if (report === undefined) throw new Error(`no worker holds ${vmId}`);
  return { ...report, ...changes } as WorkerSandbox;
}
