import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { createLogger, Secret } from '@svc/service-kit';
import { retry } from '@svc/service-kit/concurrency';
import { startTestPostgres, type TestPostgres } from '@svc/store/testing';
import { WorkerDouble } from '@svc/worker-double';
import pg from 'pg';
import { expect } from 'vitest';
import { ClusterSecrets } from '../src/crypto/cluster-secrets.ts';
import { type ControlPlane, startControlPlane } from '../src/index.ts';
import { OpenapiCheck } from './openapi-check.ts';

export const CLUSTER_SECRET = new Secret('a-secret-of-at-least-32-characters-for-tests');

const DEADLOCK = '40P01';

/** An answer with its body. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed JSON of the body; an empty object for another media type. */
  readonly body: Record<string, unknown>;
}

export interface Call {
  readonly key?: string | undefined;
  readonly json?: unknown;
  readonly raw?: NonNullable<RequestInit['body']>;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  /** The control plane to call; default: that of the harness. */
  readonly plane?: ControlPlane;
}

interface HarnessParts {
  readonly postgres: TestPostgres;
  readonly url: string;
  readonly dataDir: string;
  readonly sql: pg.Client;
  readonly plane: ControlPlane;
  readonly environment: Record<string, string>;
  readonly logLines: string[];
}

/** A control plane with its own database, for the tests of one file. Checks every answer against the OpenAPI document. */
export class Harness implements AsyncDisposable {
  readonly postgres: TestPostgres;
  readonly dataDir: string;
  readonly sql: pg.Client;
  plane: ControlPlane;
  /** The lines of the log, each a JSON text. */
  readonly logLines: string[];
  readonly workers: WorkerDouble[] = [];
  readonly #environment: Record<string, string>;
  /** That of control planes. */
  readonly #url: string;
  #check: OpenapiCheck | undefined;
  #accounts = 0;

  private constructor(parts: HarnessParts) {
    this.logLines = parts.logLines;
    this.postgres = parts.postgres;
    this.dataDir = parts.dataDir;
    this.sql = parts.sql;
    this.plane = parts.plane;
    this.#environment = parts.environment;
    this.#url = parts.url;
  }

  /**
   * @param options.postgres the database, of which the harness disposes; default: a new one
   * @param options.through how control planes reach the database, when not by its own URL
   */
  static async start(
    environment: Record<string, string> = {},
    options: {
      readonly postgres?: TestPostgres;
      readonly through?: (postgres: TestPostgres) => Promise<string>;
    } = {},
  ): Promise<Harness> {
    const postgres = options.postgres ?? (await startTestPostgres());
    const url = (await options.through?.(postgres)) ?? postgres.url;
    const dataDir = await mkdtemp(join(tmpdir(), 'svc-control-plane-'));
    const sql = new pg.Client({ connectionString: postgres.url });
    sql.on('error', () => undefined);
    await sql.connect();
    const all = {
      SVC_LIMIT_OTP_PER_IP_PER_HOUR: '1000',
      SVC_LIMIT_OTP_WRONG_PER_IP_PER_HOUR: '1000',
      ...environment,
    };
    const logLines: string[] = [];
    const plane = await startPlane({ url, dataDir, environment: all, logLines });
    return new Harness({ postgres, url, dataDir, sql, plane, environment: all, logLines });
  }

  async restart(): Promise<void> {
    await this.plane.close();
    this.plane = await this.startAnother();
  }

  /** Starts another control plane on the same database. The caller closes it. */
  async startAnother(
    environment: Record<string, string> = {},
    now?: () => number,
    clusterSecrets?: ClusterSecrets,
  ): Promise<ControlPlane> {
    const { dataDir, logLines } = this;
    const all = { ...this.#environment, ...environment };
    return startPlane({
      url: this.#url,
      dataDir,
      environment: all,
      logLines,
      now,
      clusterSecrets,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.plane.close();
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await this.sql.end().catch(() => undefined);
    await this.postgres[Symbol.asyncDispose]();
    await rm(this.dataDir, { recursive: true, force: true });
  }

  /** Starts and registers a worker. */
  async addWorker(id: string, change: (worker: WorkerDouble) => void = () => undefined) {
    const worker = new WorkerDouble(id, CLUSTER_SECRET);
    change(worker);
    await worker.start();
    this.workers.push(worker);
    const answer = await worker.register(this.plane.internalUrl);
    expect(answer.status).toBe(200);
    return worker;
  }

  /** Removes every worker, sandbox and session. */
  async reset(): Promise<void> {
    await Promise.all(this.workers.splice(0).map((worker) => worker.stop()));
    // May deadlock with statements of the control plane, which lock one table after the other.
    await retry(
      () => this.sql.query('truncate sessions, sandboxes, workers, quarantined_sandboxes cascade'),
      {
        isTransient: (error) => (error as { code?: unknown }).code === DEADLOCK,
      },
    );
    await this.sql.query('update tenants set active_sandboxes = 0');
  }

  async call(method: string, path: string, call: Call = {}): Promise<Answer> {
    const response = await fetch((call.plane ?? this.plane).url + path, {
      method,
      headers: {
        ...(call.key === undefined ? {} : { authorization: `Bearer ${call.key}` }),
        ...(call.json === undefined ? {} : { 'content-type': 'application/json' }),
        ...call.headers,
      },
      ...(call.json === undefined ? {} : { body: JSON.stringify(call.json) }),
      ...(call.raw === undefined ? {} : { body: call.raw, duplex: 'half' }),
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    });
    const text = await response.text();
    const type = response.headers.get('content-type') ?? '';
    const check = await this.openapi();
    expect(check.problemOf(method, path, response.status, type, text)).toBeUndefined();
    expect(response.headers.get('x-request-id')).toBeTruthy();
    const body = type.includes('json') ? JSON.parse(text) : {};
    return { status: response.status, headers: response.headers, text, body };
  }

  /**
   * Posts a creation whose caller leaves after the worker has answered, and before the ledger says that the sandbox
   * runs. Returns once the control plane has noticed that the caller is gone.
   */
  async leaveBeforeAnswer(worker: WorkerDouble, path: string, call: Call): Promise<void> {
    const left = new AbortController();
    worker.beforeCreated = async ({ vm_id }) => {
      await this.sql.query('begin');
      await this.sql.query('select from sandboxes where vm_id = $1 for update', [vm_id]);
    };
    const answered = this.call('POST', path, { ...call, signal: left.signal }).then(
      () => true,
      () => false,
    );
    await expect.poll(() => this.#isAwaited()).toBe(true);
    const logged = this.logLines.length;
    left.abort();
    await expect
      .poll(() => this.logLines.slice(logged).some((line) => isAborted(line, path)))
      .toBe(true);
    await this.sql.query('commit');
    expect(await answered).toBe(false);
  }

  /** Whether a statement waits for the transaction of {@link sql}. */
  async #isAwaited(): Promise<boolean> {
    const { rows } = await this.sql.query(
      `select from pg_locks where not granted and transactionid = pg_current_xact_id_if_assigned()::xid`,
    );
    return rows.length > 0;
  }

  async openapi(): Promise<OpenapiCheck> {
    this.#check ??= new OpenapiCheck(
      (await (await fetch(`${this.plane.url}/openapi.json`)).json()) as Record<string, unknown>,
    );
    return this.#check;
  }

  /** The metrics of the control plane, by name and labels. */
  async metrics(): Promise<Record<string, number>> {
    const { text } = await this.call('GET', '/metrics');
    const samples = [...text.matchAll(/^([a-z][^ #]*) (\S+)$/gm)];
    return Object.fromEntries(samples.map(([, name = '', value]) => [name, Number(value)]));
  }

  /** Signs an account up with the code from the outbox, at this control plane. */
  async signUp(email = `user${++this.#accounts}@example.com`, plane = this.plane) {
    expect(await this.call('POST', '/v1/tenants', { json: { email }, plane })).toMatchObject({
      status: 200,
    });
    const code = await this.lastCode(email);
    const { status, body } = await this.call('POST', '/v1/tenants/verify', {
      json: { email, code },
      plane,
    });
    expect(status).toBe(200);
    return {
      email,
      tenantId: String(body.tenant_id),
      key: String(body.api_key),
      token: String(body.token),
      body,
    };
  }

  /** The newest code mailed to this address. */
  async lastCode(email: string): Promise<string> {
    const outbox = join(this.dataDir, 'outbox');
    for (const name of (await readdir(outbox)).sort().reverse()) {
      const mail = await readFile(join(outbox, name), 'utf8');
      const code = /^Subject: (\d{6}) /m.exec(mail)?.[1];
      if (mail.includes(`To: ${email}`) && code !== undefined) return code;
    }
    throw new Error(`no mail to ${email}`);
  }

  /** The contents of the whole database as one string. */
  async dump(): Promise<string> {
    const tables = await this.sql.query<{ name: string }>(
      "select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'",
    );
    const parts: string[] = [];
    for (const { name } of tables.rows) {
      const { rows } = await this.sql.query<Record<string, unknown>>(`select * from ${name}`);
      for (const value of rows.flatMap(Object.values)) {
        parts.push(Buffer.isBuffer(value) ? value.toString('latin1') : JSON.stringify(value));
      }
    }
    return parts.join('\n');
  }

  /** Adds a secret bundle to the tenant of this key. */
  async addBundle(key: string, name: string, values: Record<string, string>): Promise<void> {
    const answer = await this.call('POST', '/v1/tenants/me/secrets', {
      key,
      json: { name, values },
    });
    expect(answer.status, answer.text).toBe(201);
  }

  /** Starts a session. */
  async startSession(key: string, json: object = {}): Promise<StartedSession> {
    const answer = await this.call('POST', '/v1/sessions', { key, json: sessionRequest(json) });
    expect(answer.status, answer.text).toBe(201);
    const id = String(answer.body.chat_session_id);
    return { id, vmId: String((await this.session(key, id)).vm_id), access: answer.body };
  }

  /** The record of a session. */
  async session(key: string, id: string): Promise<Record<string, unknown>> {
    return (await this.call('GET', `/v1/sessions/${id}`, { key })).body;
  }

  async create(key: string, json: object = {}): Promise<string> {
    const answer = await this.call('POST', '/v1/sandboxes', {
      key,
      json: { template: 'standard', ...json },
    });
    expect(answer.status, answer.text).toBe(201);
    return String(answer.body.vm_id);
  }
}

/** Whether a line of the log is that of a request to this path whose caller left before the answer. */
function isAborted(line: string, path: string): boolean {
  const { route, aborted } = JSON.parse(line) as { route?: string; aborted?: boolean };
  return route === path && aborted === true;
}

/** A session with the id of its sandbox. */
export interface StartedSession {
  readonly id: string;
  readonly vmId: string;
  readonly access: Record<string, unknown>;
}

/** A valid request for a session of a tenant with a bundle `llm`. */
export function sessionRequest(changes: object = {}): Record<string, unknown> {
  return {
    agent: { kind: 'deictic' },
    app: { id: 'my-app' },
    template: 'standard',
    llm: { vendor: 'anthropic' },
    secrets: ['llm'],
    user_id: 'ada',
    ...changes,
  };
}

async function startPlane({
  url,
  dataDir,
  environment,
  logLines,
  now,
  clusterSecrets,
}: {
  readonly url: string;
  readonly dataDir: string;
  readonly environment: Record<string, string>;
  readonly logLines: string[];
  readonly now?: (() => number) | undefined;
  readonly clusterSecrets?: ClusterSecrets | undefined;
}): Promise<ControlPlane> {
  return startControlPlane({
    config: loadConfig({
      SVC_DATA_DIR: dataDir,
      SVC_TLS: 'off',
      SVC_LISTEN: '127.0.0.1:0',
      ...environment,
    }),
    logger: createLogger({
      level: process.env.TEST_LOG_LEVEL ?? 'debug',
      pretty: false,
      destination: { write: (line) => void logLines.push(line) },
    }),
    clusterSecrets: clusterSecrets ?? (await ClusterSecrets.open([CLUSTER_SECRET])),
    database: { url, close: async () => undefined },
    ...(now === undefined ? {} : { now }),
  });
}
