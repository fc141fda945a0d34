import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { interruptSignal } from '@svc/service-driver';
import { generateKeyPair, type KeyPair } from '@svc/service-kit';
import { forkProgram } from '../bare/forked-server.ts';
import { type PrivateLedger, startLedger } from '../bare/private-ledger.ts';
import { summarise } from '../measure/statistics.ts';
import { describeMachine } from '../report/machine.ts';
import type { ControlPlaneOptions } from './control-plane.ts';
import { fill } from './fill.ts';
import { startFleetServer } from './fleet-server.ts';
import { applyLoad } from './load.ts';
import type { Paced } from './pace.ts';
import { costliest, postgresUse } from './postgres-use.ts';

const CONTROL_PLANE = fileURLToPath(new URL('control-plane.ts', import.meta.url));
const COSTLIEST = 8;
const INTERRUPTED = 130;

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '10000' },
    rows: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '60' },
    creates: { type: 'string', default: '50' },
    gets: { type: 'string', default: '50' },
    lists: { type: 'string', default: '5' },
    heartbeats: { type: 'string', default: '2000' },
    changed: { type: 'string', default: '1' },
  },
});
const size = { workers: Number(values.workers), rows: Number(values.rows) };
const seconds = Number(values.seconds);
const changed = Number(values.changed);
const rates = {
  creates: Number(values.creates),
  gets: Number(values.gets),
  lists: Number(values.lists),
  heartbeats: Number(values.heartbeats),
};

const signal = interruptSignal();
const directory = await mkdtemp(join(tmpdir(), 'svc-scale-'));
try {
  await using fleet = await startFleetServer();
  await using ledger = await startLedger(join(directory, 'ledger'));
  const begun = performance.now();
  const key = await generateKeyPair();
  await fill(ledger.sql, size, fleet, key);
  const filled = ((performance.now() - begun) / 1000).toFixed(0);
  const { rows } = await ledger.sql.query(
    'select pg_size_pretty(pg_database_size(current_database())) as size',
  );
  console.log(
    `${size.workers} workers and ${size.rows} sandboxes: ${rows[0].size}, filled in ${filled} s`,
  );
  signal.throwIfAborted();
  await measure(ledger, key);
} catch (error) {
  if (!signal.aborted) throw error;
  console.error('interrupted');
  process.exitCode = INTERRUPTED;
} finally {
  await rm(directory, { recursive: true, force: true });
}

async function measure({ sql, url }: PrivateLedger, key: KeyPair): Promise<void> {
  const secret = randomUUID();
  const options: ControlPlaneOptions = {
    databaseUrl: url,
    dataDir: join(directory, 'control-plane'),
    secret,
  };
  const plane = await forkProgram(CONTROL_PLANE, options);
  try {
    const load = { baseUrl: `http://127.0.0.1:${plane.port}`, size, key, changed };
    await applyLoad({ ...load, rates, duration: { seconds: Math.min(5, seconds), signal } });
    await sql.query('select pg_stat_statements_reset()');
    const before = await postgresUse(sql);
    const begun = performance.now();
    const paced = await applyLoad({ ...load, rates, duration: { seconds, signal } });
    signal.throwIfAborted();
    const took = (performance.now() - begun) / 1000;
    const after = await postgresUse(sql);
    await report(paced, took);
    const cpu = (after.cpuSeconds - before.cpuSeconds) / took;
    const wal = (after.walBytes - before.walBytes) / took / 1024 / 1024;
    console.log(
      `${((after.statements - before.statements) / took).toFixed(0)} statements per second`,
    );
    console.log(
      `PostgreSQL: ${cpu.toFixed(2)} processors, ${wal.toFixed(1)} MiB of write-ahead log per second\n`,
    );
    console.log('| share | calls | each | statement |\n|---|---|---|---|');
    for (const line of await costliest(sql, COSTLIEST)) console.log(line);
  } finally {
    await plane.close();
  }
}

async function report(paced: Readonly<Record<string, Paced>>, took: number): Promise<void> {
  const { cores, load } = await describeMachine();
  console.log(`${cores} cores, load ${load.toFixed(1)}; ${took.toFixed(0)} s\n`);
  console.log(
    '| request | per second | median | p99 | failed | not sent |\n|---|---|---|---|---|---|',
  );
  for (const [name, { took: ms, failed, leftOut, failures }] of Object.entries(paced)) {
    const { median, p99 } = summarise(ms.length === 0 ? [Number.NaN] : ms);
    const rate = (ms.length / took).toFixed(1);
    console.log(
      `| ${name} | ${rate} | ${median.toFixed(1)} ms | ${p99.toFixed(1)} ms | ${failed} | ${leftOut} |`,
    );
    for (const failure of [...failures].slice(0, 3)) console.error(`${name}: ${failure}`);
  }
  console.log('');
}
