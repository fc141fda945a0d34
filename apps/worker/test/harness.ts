import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import {
  CONTROL_PLANE_NAME,
  ERRORS,
  INTERNAL_PREFIX,
  isErrorCode,
  type PlacedAgent,
} from '@svc/contract';
import {
  createTokenMinter,
  generateKeyPair,
  type KeyPair,
  type TokenMinter,
} from '@svc/service-kit';
import { type Logger, pino } from 'pino';
import { Agent, type Dispatcher, request } from 'undici';
import type { AgentTimeouts } from '../src/agents/timeouts.ts';
import type { Clock } from '../src/clock.ts';
import type { LeaseTimes } from '../src/control-plane/lease.ts';
import { type RunningWorker, startWorker } from '../src/index.ts';
import type { CapacityLimits } from '../src/vms/capacity/capacity.ts';
import { ControlPlaneDouble } from './control-plane-double.ts';
import { LIMITS, MemoryHost } from './memory-host.ts';
import { type PlacementChanges, placement, sessionAgent } from './placement.ts';
import type { ScriptedGuest } from './scripted-guest.ts';

export interface HarnessOptions {
  readonly host?: MemoryHost;
  /** The images of the host. Default: that of `standard`. */
  readonly images?: MemoryHost['currentImages'];
  readonly pool?: Record<string, number>;
  readonly capacity?: CapacityLimits;
  readonly uploadBytes?: number;
  readonly viewBytesPerSecond?: number;
  /** The agent runtime of every VM. */
  readonly guest?: ScriptedGuest;
  /** The data directory of an earlier worker, to start its successor. */
  readonly dataDir?: string;
  readonly controlPlane?: ControlPlaneDouble;
  readonly gatewayPort?: number;
  /** For saving and ending the sandboxes when the worker closes. */
  readonly endSeconds?: number;
  readonly clock?: Clock;
  readonly agentTimeouts?: Partial<AgentTimeouts>;
  readonly linkBytesPerTenant?: number;
  readonly lease?: LeaseTimes;
  readonly egress?: Partial<Pick<Config, 'egressAllowHosts' | 'egressCaFile'>>;
  readonly tracing?: Partial<Pick<Config, 'otlpEndpoint' | 'otlpHeaders' | 'traceRatio'>>;
  /** Default: one at the level of `TEST_LOG_LEVEL`, or none. */
  readonly logger?: Logger;
  /** Leaves the control plane unreachable until the test starts it. */
  readonly withoutControlPlane?: boolean;
}

/** The same for all harnesses, so that a worker and its successor have one identity. */
const [CONTROL_PLANE_KEY, WORKER_KEY] = [generateKeyPair(), generateKeyPair()];

const CONNECT_TIMEOUT_MS = 60_000;

const NO_OUTPUT = { output: '', stdout: '', stderr: '', code: '' };

/** A whole worker behind its HTTP server, over VMs in memory, with a control plane double and a client. */
export class Harness implements AsyncDisposable {
  readonly host: MemoryHost;
  readonly worker: RunningWorker;
  readonly controlPlane: ControlPlaneDouble;
  readonly dataDir: string;
  /** Of the control plane. */
  readonly key: KeyPair;
  readonly #mint: TokenMinter;
  #agent: Agent | undefined;

  private constructor(
    host: MemoryHost,
    worker: RunningWorker,
    controlPlane: ControlPlaneDouble,
    dataDir: string,
    key: KeyPair,
  ) {
    this.host = host;
    this.worker = worker;
    this.controlPlane = controlPlane;
    this.dataDir = dataDir;
    this.key = key;
    this.#mint = createTokenMinter(key, CONTROL_PLANE_NAME);
  }

  static async start(options: HarnessOptions = {}): Promise<Harness> {
    const host = options.host ?? new MemoryHost();
    if (options.images !== undefined) host.currentImages = options.images;
    if (options.guest !== undefined) host.runGuest(options.guest);
    const identity = { id: 'worker-1', key: await WORKER_KEY };
    const controlPlane =
      options.controlPlane ?? (await ControlPlaneDouble.create(await CONTROL_PLANE_KEY, identity));
    if (options.withoutControlPlane !== true) await controlPlane.start();
    const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'svc-worker-')));
    const worker = await startWorker({
      config: {
        pool: options.pool ?? {},
        workerUrl: undefined,
        workerEndSeconds: options.endSeconds ?? 60,
        dataDir,
        egressAllowHosts: options.egress?.egressAllowHosts ?? [],
        egressCaFile: options.egress?.egressCaFile,
        otlpEndpoint: undefined,
        otlpHeaders: {},
        traceRatio: 1,
        ...options.tracing,
        limits: {
          savedBytesPerSecond: 1024 ** 3,
          viewBytesPerSecond: options.viewBytesPerSecond ?? 1024 ** 3,
          outputBytesPerSecond: 1024 ** 3,
          uploadBytes: options.uploadBytes ?? 64 * 1024 * 1024,
        },
      },
      identity,
      logger: options.logger ?? pino({ level: process.env.TEST_LOG_LEVEL ?? 'silent' }),
      microvms: host,
      controlPlane: { url: controlPlane.url, ca: controlPlane.ca },
      listen: { host: '127.0.0.1', port: 0 },
      signal: new AbortController().signal,
      capacity: options.capacity ?? LIMITS,
      gatewayPort: options.gatewayPort ?? 0,
      ...(options.clock === undefined ? {} : { clock: options.clock }),
      ...(options.linkBytesPerTenant === undefined
        ? {}
        : { linkBytesPerTenant: options.linkBytesPerTenant }),
      ...(options.agentTimeouts === undefined ? {} : { agentTimeouts: options.agentTimeouts }),
      ...(options.lease === undefined ? {} : { lease: options.lease }),
    });
    if (options.withoutControlPlane !== true) await worker.ready;
    return new Harness(host, worker, controlPlane, dataDir, await CONTROL_PLANE_KEY);
  }

  /** Calls the internal API as the control plane. `path` is below the prefix. */
  async call(
    method: Dispatcher.HttpMethod,
    path: string,
    options: {
      readonly json?: unknown;
      readonly body?: Dispatcher.DispatchOptions['body'];
      readonly headers?: Record<string, string>;
      readonly signal?: AbortSignal;
      readonly token?: string;
    } = {},
  ): Promise<Dispatcher.ResponseData> {
    const token = options.token ?? (await this.token());
    return request(new URL(`${INTERNAL_PREFIX}${path}`, this.worker.url), {
      method,
      dispatcher: this.#dispatcher(),
      headers: {
        authorization: `Bearer ${token}`,
        ...(options.json === undefined ? {} : { 'content-type': 'application/json' }),
        ...options.headers,
      },
      body: options.json === undefined ? (options.body ?? null) : JSON.stringify(options.json),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
  }

  /** A token of the control plane for the worker. */
  token(): Promise<string> {
    return this.#mint('worker-1');
  }

  /** Calls the internal API and reads a JSON answer. */
  async json<T = Record<string, unknown>>(
    method: Dispatcher.HttpMethod,
    path: string,
    json?: unknown,
  ): Promise<{ status: number; body: T }> {
    const response = await this.call(method, path, json === undefined ? {} : { json });
    return { status: response.statusCode, body: (await response.body.json()) as T };
  }

  /** The metrics as Prometheus scrapes them. */
  async metrics(): Promise<string> {
    const { body } = await this.call('GET', '/../../metrics');
    return body.text();
  }

  /** Creates a sandbox and returns its id. */
  async create(changes: PlacementChanges = {}): Promise<string> {
    const request = placement(changes);
    const { status, body } = await this.json<{ code?: string }>('POST', '/sandboxes', request);
    if (status !== 201) throw new Error(`the create answered ${status} ${body.code}`);
    return request.vm_id;
  }

  /** Starts a session and returns its ids. */
  async startSession(
    changes: Partial<NonNullable<PlacedAgent['session']>> = {},
    placed: PlacementChanges = {},
  ): Promise<{ readonly session: string; readonly vmId: string }> {
    const session = changes.chat_session_id ?? randomUUID();
    const vmId = await this.create({ ...placed, agent: sessionAgent(session, changes) });
    return { session, vmId };
  }

  /** Runs a command and collects its events. An `error` event counts as its status. */
  async exec(id: string, body: unknown) {
    const response = await this.call('POST', `/sandboxes/${id}/exec`, { json: body });
    const text = await response.body.text();
    if (response.statusCode !== 200) {
      return { status: response.statusCode, body: { ...NO_OUTPUT, ...JSON.parse(text) } };
    }
    const collected = { ...NO_OUTPUT };
    for (const [, event = '', data = ''] of text.matchAll(/^event: (\w+)\ndata: (.*)$/gm)) {
      const value = JSON.parse(data);
      if (event !== 'stdout' && event !== 'stderr') Object.assign(collected, value);
      else {
        collected.output += value.data;
        collected[event] += value.data;
      }
    }
    const { code } = collected;
    return { status: isErrorCode(code) ? ERRORS[code].status : 200, body: collected };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.worker.close({ keepSandboxes: false });
    await this.controlPlane.stop();
    await this.#agent?.destroy();
    await rm(this.dataDir, { recursive: true, force: true });
  }

  /** Trusts exactly the certificate that the worker registered; before the registration it checks none. */
  #dispatcher(): Agent {
    const registered = this.controlPlane.registrations.findLast(
      ({ url }) => url === this.worker.url,
    );
    const certificate = registered?.certificate;
    this.#agent ??= new Agent({
      connect: {
        // Undici's own 10 seconds are not enough for 64 handshakes at once on a loaded machine.
        timeout: CONNECT_TIMEOUT_MS,
        ...(certificate === undefined ? { rejectUnauthorized: false } : { ca: certificate }),
      },
    });
    return this.#agent;
  }
}
