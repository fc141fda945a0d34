import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type pg from 'pg';

const TICKS_PER_SECOND = 100;

/** What a PostgreSQL server has done so far. */
export interface PostgresUse {
  readonly statements: number;
  readonly cpuSeconds: number;
  readonly walBytes: number;
}

/** Reads the counters of a server on this machine. */
export async function postgresUse(sql: pg.Client): Promise<PostgresUse> {
  const { rows } = await sql.query<{ pid: number; statements: number; wal: number }>(
    `select pg_backend_pid() as pid, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as wal,
       (select coalesce(sum(calls), 0)::float8 from pg_stat_statements) as statements`,
  );
  const [row] = rows;
  if (row === undefined) throw new Error('PostgreSQL did not answer.');
  const { parent } = await processOf(row.pid);
  return {
    statements: row.statements,
    walBytes: row.wal,
    cpuSeconds: await cpuSecondsOf(parent),
  };
}

/** The statements that took most of the server's time, as lines of a table. */
export async function costliest(sql: pg.Client, count: number): Promise<string[]> {
  const { rows } = await sql.query<{ query: string; calls: number; ms: number; share: number }>(
    `select regexp_replace(left(query, 600), '\\s+', ' ', 'g') as query, calls::int,
       (total_exec_time + total_plan_time) / calls as ms,
       100 * (total_exec_time + total_plan_time) / sum(total_exec_time + total_plan_time) over () as share
     from pg_stat_statements where calls > 0 order by share desc limit $1`,
    [count],
  );
  return rows.map(
    ({ query, calls, ms, share }) =>
      `| ${share.toFixed(1)} % | ${calls} | ${ms.toFixed(2)} ms | ${query.slice(0, 100)} |`,
  );
}

/** Of the server and its processes, those that have ended included. */
async function cpuSecondsOf(postmaster: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'pid=', '--ppid', String(postmaster)]);
  const children = stdout.trim().split(/\s+/).map(Number);
  const processes = await Promise.all([postmaster, ...children].map(ticksOf));
  return processes.reduce((sum, ticks) => sum + ticks, 0) / TICKS_PER_SECOND;
}

async function ticksOf(pid: number): Promise<number> {
  const { ticks, endedTicks } = await processOf(pid).catch(() => ({ ticks: 0, endedTicks: 0 }));
  return ticks + endedTicks;
}

async function processOf(
  pid: number,
): Promise<{ readonly parent: number; readonly ticks: number; readonly endedTicks: number }> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [parent = 0, user = 0, system = 0, endedUser = 0, endedSystem = 0] = [
    1, 11, 12, 13, 14,
  ].map((index) => Number(fields[index]));
  return { parent, ticks: user + system, endedTicks: endedUser + endedSystem };
}
