import { INTERNAL_PREFIX, WORKER_TIMES } from '@svc/contract';
import { createTokenMinter, type KeyPair } from '@svc/service-kit';
import { Agent, request } from 'undici';
import { keyOf, LIVE_PER_WORKER, type Size, sandboxesOf, TENANTS } from './fill.ts';
import { REPORT } from './fleet-server.ts';
import { type Duration, keepPace, type Paced } from './pace.ts';

const DEADLINE_MS = 30_000;
const REPORTS_PER_COMPLETE = WORKER_TIMES.completeReportMs / WORKER_TIMES.heartbeatIntervalMs;

/** How much is asked of a control plane each second. */
export interface Rates {
  /** Each of these creates is followed by a delete. */
  readonly creates: number;
  readonly gets: number;
  readonly lists: number;
  readonly heartbeats: number;
}

/** The load on one control plane. */
export interface LoadOptions {
  readonly baseUrl: string;
  readonly size: Size;
  readonly rates: Rates;
  readonly duration: Duration;
  /** How many sandboxes of a worker have changed since its last report. */
  readonly changed: number;
  /** Of every worker. */
  readonly key: KeyPair;
}

/** Applies the load, and returns what became of each kind of request. */
export async function applyLoad(options: LoadOptions): Promise<Record<string, Paced>> {
  const { size, rates, duration } = options;
  const agent = new Agent({ connections: 64, headersTimeout: DEADLINE_MS });
  const heartbeats = new Agent({ connections: 32, headersTimeout: DEADLINE_MS });
  const customer = customerOf(options.baseUrl, agent);
  const deletes: Paced = { took: [], failed: 0, leftOut: 0, failures: new Set() };
  const live = size.workers * LIVE_PER_WORKER;
  const [creates, gets, lists, beats] = await Promise.all([
    keepPace(
      { perSecond: rates.creates, atOnce: 200, call: createFor(customer, deletes) },
      duration,
    ),
    keepPace(
      {
        perSecond: rates.gets,
        atOnce: 100,
        call: async (index) => {
          const vm = (index * 7919) % live;
          await customer('GET', `/v1/sandboxes/vm_${vm}`, vm % TENANTS, 200);
        },
      },
      duration,
    ),
    keepPace(
      {
        perSecond: rates.lists,
        atOnce: 50,
        call: async (index) => {
          await customer('GET', '/v1/sandboxes', (index * 7919) % TENANTS, 200);
        },
      },
      duration,
    ),
    keepPace(
      { perSecond: rates.heartbeats, atOnce: 32, call: reportOf(options, heartbeats) },
      duration,
    ),
  ]);
  await Promise.all([agent.close(), heartbeats.close()]);
  return { create: creates, delete: deletes, get: gets, list: lists, heartbeat: beats };
}

type Customer = (
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  tenant: number,
  expected: number,
  body?: object,
) => Promise<Record<string, unknown>>;

function customerOf(baseUrl: string, dispatcher: Agent): Customer {
  return async (method, path, tenant, expected, body) => {
    const answer = await request(baseUrl + path, {
      method,
      dispatcher,
      headers: {
        authorization: `Bearer ${keyOf(tenant)}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    const text = await answer.body.text();
    if (answer.statusCode !== expected)
      throw new Error(`${method} ${answer.statusCode} ${text.slice(0, 200)}`);
    return JSON.parse(text);
  };
}

function createFor(customer: Customer, deletes: Paced): (index: number) => Promise<void> {
  return async (index) => {
    const tenant = (index * 7919) % TENANTS;
    const made = await customer('POST', '/v1/sandboxes', tenant, 201, { template: 'standard' });
    const begun = performance.now();
    customer('DELETE', `/v1/sandboxes/${made.vm_id}`, tenant, 200).then(
      () => void deletes.took.push(performance.now() - begun),
      (error: unknown) => {
        deletes.failed += 1;
        deletes.failures.add(String(error));
      },
    );
  };
}

/**
 * Reports of one worker after the other, as few of them complete as those of real workers. Some sandboxes of a worker have
 * changed since its last one.
 */
function reportOf(
  { baseUrl, key, size, changed }: LoadOptions,
  dispatcher: Agent,
): (index: number) => Promise<void> {
  return async (index) => {
    const worker = index % size.workers;
    const id = `worker_${worker}`;
    const token = await createTokenMinter(key, id)('svc-control-plane');
    const isComplete = index % REPORTS_PER_COMPLETE === 0;
    const round = Math.floor(index / size.workers);
    const sandboxes = sandboxesOf(worker, size).map((vm, place) => ({
      ...REPORT,
      vm_id: `vm_${vm}`,
      tenant_id: `usr_${vm % TENANTS}`,
      cpu_seconds: place < changed ? 1 + round : 1,
    }));
    const free = { memory_mib: 60_000, disk_mib: 900_000 };
    const path = `${INTERNAL_PREFIX}/workers/${id}/${isComplete ? 'heartbeat' : 'lease'}`;
    const answer = await request(baseUrl + path, {
      method: 'POST',
      dispatcher,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(
        isComplete
          ? {
              capacity: { vcpu: 32, memory_mib: 65_536, disk_mib: 1_000_000 },
              free,
              templates: [{ template: 'standard', image: 'standard-1', ready: true }],
              sandboxes,
            }
          : { free, sandboxes: sandboxes.slice(0, changed) },
      ),
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    const text = await answer.body.text();
    if (answer.statusCode !== 200)
      throw new Error(`report ${answer.statusCode} ${text.slice(0, 200)}`);
  };
}
