import { ServiceError } from '@svc/contract';
import { openDeadline, Slots } from '@svc/service-kit/concurrency';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { isConnectionError, mapDatabaseError } from './database-errors.ts';
import { type Send, sendPlain, sendPrepared, sendWithin } from './send-statement.ts';
import { isPooled, type StatementDeadlines, serverDeadlines } from './session-settings.ts';
import { statementOwner } from './statement-owner.ts';

/** Deadlines in milliseconds. Each later one is a fallback for the one before it. */
export interface Deadlines extends StatementDeadlines {
  readonly connect: number;
}

/** For statements that a request awaits. */
export const REQUEST_DEADLINES: Deadlines = {
  connect: 5_000,
  lock: 8_000,
  statement: 10_000,
  query: 12_000,
};

/** For commands that read much. */
export const COMMAND_DEADLINES: Deadlines = {
  connect: 5_000,
  lock: 300_000,
  statement: 300_000,
  query: 310_000,
};

/** For contractions of the schema, which run while requests wait for the same tables. */
export const CONTRACTION_DEADLINES: Deadlines = { ...COMMAND_DEADLINES, lock: 2_000 };

/** For migrations, which may build indexes of large tables. What keeps others from a table has shorter ones: see `migrate`. */
export const MIGRATION_DEADLINES: Deadlines = {
  connect: 5_000,
  lock: 3_600_000,
  statement: 3_600_000,
  query: 3_610_000,
};

/** Connections of a pool. */
export interface PoolSize {
  readonly connections: number;
  /** Of these, how many the statements of one owner may have at once. Default: all. */
  readonly perOwner?: number;
}

/** Of one pool for requests of customers, and one for those of workers and for the service itself. */
const CUSTOMERS: PoolSize = { connections: 16, perOwner: 8 };
const SERVICE: PoolSize = { connections: 8, perOwner: 4 };

/** What connections are for: requests of customers, those of workers and the service's own work, or look-ups. */
export type PoolName = 'customers' | 'service' | 'lookups';

/** Told of what happens in pools. */
export interface PoolListener {
  /** A connection that nobody used was lost. */
  readonly onConnectionLost?: ((error: Error) => void) | undefined;
  /** A statement or transaction got its connection, or gave up, after so many seconds. */
  readonly onWaited?: ((pool: PoolName, seconds: number) => void) | undefined;
}

/** The connections of a pool, and the ways to send statements on them. Ending one ends both. */
export interface Pool {
  readonly plain: PostgresPool;
  /** See {@link sendPrepared}. Behind PgBouncer the same as `plain`. */
  readonly prepared: PostgresPool;
}

/**
 * Opens the pools for requests. Each statement, or transaction, uses that of its owner. Otherwise like {@link openPool}.
 */
export function openPools(url: string, deadlines: Deadlines, listener: PoolListener): Pool {
  const pools = {
    customers: openPool('customers', url, deadlines, CUSTOMERS, listener),
    service: openPool('service', url, deadlines, SERVICE, listener),
  };
  const ofOwner = (way: keyof Pool): PostgresPool => ({
    connect: () => pools[statementOwner().pool][way].connect(),
    end: async () => {
      await Promise.all([pools.customers[way].end(), pools.service[way].end()]);
    },
  });
  return { plain: ofOwner('plain'), prepared: ofOwner('prepared') };
}

/**
 * Opens a pool with a deadline for every wait: for a connection, a lock or a statement. Throws `database_unavailable`
 * when the server cannot be reached, and closes the affected connection, so that the pool recovers when the server is
 * available again. The owners of statements take turns.
 */
export function openPool(
  name: PoolName,
  url: string,
  deadlines: Deadlines,
  { connections, perOwner = connections }: PoolSize,
  { onConnectionLost = () => undefined, onWaited = () => undefined }: PoolListener = {},
): Pool {
  const pooled = isPooled(url);
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    connectionTimeoutMillis: deadlines.connect,
    query_timeout: deadlines.query,
    ...(pooled ? {} : serverDeadlines(deadlines)),
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    application_name: 'svc',
  });
  // The pool opens another connection.
  pool.on('error', onConnectionLost);
  // The pool handles errors of idle connections only. Without this listener, an error on a connection in use would end
  // the process. Its query fails as well, so the error is not lost.
  pool.on('connect', (client) => client.on('error', () => undefined));
  // The pool itself would serve whoever came first, and so the backlog of one owner before everybody else.
  const slots = new Slots(connections, perOwner);
  const sending = (send: Send): PostgresPool => ({
    connect: async () => {
      const begun = performance.now();
      try {
        const release = await takeTurn(slots, deadlines.connect);
        try {
          const client = await pool.connect().catch(rethrowMapped);
          return guard(client, release, send);
        } catch (error) {
          release();
          throw error;
        }
      } finally {
        onWaited(name, (performance.now() - begun) / 1000);
      }
    },
    end: () => pool.end(),
  });
  const plain = sending(pooled ? sendWithin(deadlines) : sendPlain);
  return { plain, prepared: pooled ? plain : sending(sendPrepared) };
}

async function takeTurn(slots: Slots, ms: number): Promise<() => void> {
  using deadline = openDeadline(undefined, ms);
  try {
    return await slots.take(deadline.signal, statementOwner().key);
  } catch (cause) {
    throw new ServiceError('database_unavailable', undefined, { cause });
  }
}

function guard(client: pg.PoolClient, onRelease: () => void, send: Send): PostgresPoolClient {
  let broken = false;
  const note = (error: unknown): never => {
    broken ||= isConnectionError(error);
    return rethrowMapped(error);
  };
  const retire = () => {
    broken = true;
  };
  const guarded = {
    query: (text: string, values: unknown[]) => send(client, { text, values }, retire).catch(note),
    release: () => {
      client.release(broken);
      onRelease();
    },
  };
  return guarded as unknown as PostgresPoolClient;
}

function rethrowMapped(error: unknown): never {
  throw mapDatabaseError(error);
}
