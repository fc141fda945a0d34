import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { isServiceError } from '@svc/contract';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertSession } from '../test/insert-session.ts';
import { insertTenants } from '../test/insert-tenants.ts';
import { type PostgresPair, startPostgresPair } from '../test/postgres-servers.ts';
import type { Schema } from './schema.ts';
import { openStore, type Store } from './store.ts';

const SESSIONS = 8;
const PLACEMENT = { unreachableMs: 30_000, sandboxesPerTenant: 100 };

/** One address for whichever server is the primary, as a proxy or a virtual address gives it. */
class Address implements AsyncDisposable {
  /** The socket of the primary. */
  target: string;
  readonly #open = new Set<Socket>();
  readonly #server = createServer((client) => {
    const server = connect(this.target);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#open.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        this.#open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });

  constructor(target: string) {
    this.target = target;
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `postgres://svc@127.0.0.1:${(this.#server.address() as AddressInfo).port}/postgres`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
  }
}

let pair: PostgresPair;
let address: Address;
let store: Store;
let sessions: string[];

beforeAll(async () => {
  pair = await startPostgresPair();
  address = new Address(pair.primary.socket);
  store = await openStore({ url: await address.listen(), placement: PLACEMENT });
  sessions = await addSessions(pair.primary.url);
});
afterAll(async () => {
  await store?.close();
  await address?.[Symbol.asyncDispose]();
  await pair?.[Symbol.asyncDispose]();
});

async function addSessions(url: string): Promise<string[]> {
  const pool = new pg.Pool({ connectionString: url });
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
  try {
    await insertTenants(db, 'usr_1');
    const ids: string[] = [];
    for (let n = 0; n < SESSIONS; n += 1) ids.push(await insertSession(db, 'usr_1'));
    return ids;
  } finally {
    await db.destroy();
  }
}

const turn = (sessionId: string, seq: number) => ({
  sessionId,
  generation: 1,
  firstSeq: seq,
  lastSeq: seq,
  frames: Buffer.from(`{"seq":${seq}}\n`),
  conversation: Buffer.from(`until ${seq}`),
});

/** Commits turns until `isOver`, each until it is acknowledged, as workers do. */
async function commitTurns(
  sessionId: string,
  isOver: (acknowledged: number) => boolean,
  onAcknowledged: (seq: number) => void,
): Promise<void> {
  for (let seq = 1; !isOver(seq - 1); ) {
    try {
      expect(await store.sessionHistory.commit(turn(sessionId, seq))).toBe('committed');
      onAcknowledged(seq);
      seq += 1;
    } catch (error) {
      if (!isServiceError(error, 'database_unavailable')) throw error;
    }
  }
}

test('no acknowledged turn is lost when the primary is, and the same store goes on', async () => {
  const acknowledged = new Map<string, number>();
  let promotedAt: ReadonlyMap<string, number> | undefined;
  const hasGoneOn = (sessionId: string, seq: number) =>
    promotedAt !== undefined && seq >= (promotedAt.get(sessionId) ?? 0) + 5;
  const committers = sessions.map((id) =>
    commitTurns(
      id,
      (seq) => hasGoneOn(id, seq),
      (seq) => acknowledged.set(id, seq),
    ),
  );
  const running = Promise.all(committers);
  await Promise.race([running, untilEach(acknowledged, 20)]);
  await pair.primary.kill();
  const before = new Map(acknowledged);
  await pair.promote();
  // What the lost primary acknowledged is there before anything new.
  const direct = new pg.Client({ connectionString: pair.standby.url });
  await direct.connect();
  const { rows } = await direct.query<{ session_id: string; last_seq: string }>(
    'select session_id, last_seq from sessions',
  );
  await direct.end();
  for (const { session_id, last_seq } of rows) {
    expect(Number(last_seq)).toBeGreaterThanOrEqual(before.get(session_id) ?? 0);
  }
  address.target = pair.standby.socket;
  promotedAt = before;
  await running;
  for (const id of sessions) {
    const state = await store.sessionHistory.state(id);
    const last = acknowledged.get(id) ?? 0;
    expect(state).toMatchObject({ lastSeq: last, conversation: Buffer.from(`until ${last}`) });
    const frames = Buffer.concat((state?.frames ?? []) as Buffer[]).toString();
    const expected = Array.from({ length: last }, (_, n) => `{"seq":${n + 1}}\n`).join('');
    expect(frames).toBe(expected);
  }
});

async function untilEach(acknowledged: ReadonlyMap<string, number>, seq: number): Promise<void> {
  await expect
    .poll(() => sessions.every((id) => (acknowledged.get(id) ?? 0) >= seq), { timeout: 120_000 })
    .toBe(true);
}

test('a commit that no standby has is not acknowledged', async () => {
  const direct = new pg.Client({ connectionString: pair.standby.url });
  await direct.connect();
  const sessionId = sessions[0] ?? '';
  const { lastSeq = 0 } = (await store.sessionHistory.state(sessionId)) ?? {};
  try {
    // The name of a standby that there is not.
    await direct.query(`alter system set synchronous_standby_names = 'gone'`);
    await direct.query('select pg_reload_conf()');
    await expect
      .poll(async () => (await direct.query('show synchronous_standby_names')).rows)
      .toEqual([{ synchronous_standby_names: 'gone' }]);
    await expect(store.sessionHistory.commit(turn(sessionId, lastSeq + 1))).rejects.toMatchObject({
      code: 'database_unavailable',
    });
    await direct.query(`alter system reset synchronous_standby_names`);
    await direct.query('select pg_reload_conf()');
    // The worker repeats the turn.
    expect(await store.sessionHistory.commit(turn(sessionId, lastSeq + 1))).toBe('committed');
  } finally {
    await direct.end();
  }
}, 120_000);
