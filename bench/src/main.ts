import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { interruptSignal } from '@svc/service-driver';
import { readArguments } from './arguments.ts';
import { BareMachine } from './bare/bare-machine.ts';
import { snapshotOf } from './bare/snapshot.ts';
import type { Row, RowResult } from './measure/row.ts';
import { describeMachine } from './report/machine.ts';
import { writeResults } from './report/results-file.ts';
import { resultTable } from './report/table.ts';
import { ROWS } from './rows/index.ts';
import { BenchService } from './service/bench-service.ts';
import { startBenchModels } from './sessions/bench-models.ts';

/** Share of the cores that may be busy at the start of the bench. */
const BUSY_SHARE = 0.5;
const INTERRUPTED = 130;

const { runs, only } = readArguments(
  process.argv.slice(2),
  ROWS.map(({ name }) => name),
);
const stop = interruptSignal();
const startedAt = new Date();
const machine = await describeMachine();
if (machine.load > BUSY_SHARE * machine.cores) {
  console.log(
    `this machine is busy (load ${machine.load.toFixed(1)}): the results will not be reliable`,
  );
}
const scratch = await mkdtemp(join(tmpdir(), 'svc-bench-'));
const models = await startBenchModels(scratch);
const results: RowResult[] = [];
try {
  for (const rows of byService(ROWS)) results.push(...(await runRows(rows)));
} catch (error) {
  if (!stop.aborted) {
    console.error(`the services' logs are kept below ${scratch}`);
    throw error;
  }
}
await models.server.close();
await rm(scratch, { recursive: true, force: true });
if (stop.aborted) {
  console.error('interrupted');
  process.exitCode = INTERRUPTED;
} else {
  console.log(`\n${resultTable(results)}`);
  console.log(`results as JSON: ${await writeResults(startedAt, machine, runs, results)}`);
  process.exitCode = results.every(({ ok }) => ok) ? 0 : 1;
}

/** Groups the chosen rows by the service that they share. */
function byService(all: readonly Row[]): Iterable<[Row, ...Row[]]> {
  const groups = new Map<string, [Row, ...Row[]]>();
  for (const row of all.filter(({ name }) => only.length === 0 || only.includes(name))) {
    const key = JSON.stringify([row.pool, row.templates]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return groups.values();
}

async function runRows(rows: readonly [Row, ...Row[]]): Promise<RowResult[]> {
  const [{ pool, templates }] = rows;
  const directory = await mkdtemp(join(scratch, `pool-${pool}-`));
  console.log(`starting a service with a pool of ${pool} …`);
  const data = join(directory, 'data');
  const service = await BenchService.start(data, pool, models, stop, templates);
  let bare: Promise<BareMachine> | undefined;
  const bareMachine = () => {
    bare ??= snapshotOf(service).then((snapshot) => BareMachine.open(snapshot, directory));
    return bare;
  };
  const done: RowResult[] = [];
  try {
    for (const row of rows) {
      const progress = (text: string) => showProgress(row.name, text);
      const found = await row.run({
        service,
        models,
        runs,
        scratch: directory,
        bareMachine,
        progress,
      });
      console.log(`\n${resultTable(found)}`);
      done.push(...found);
    }
  } finally {
    if (bare !== undefined) await (await bare).close();
    await service.stop();
  }
  return done;
}

/** Overwrites one line of the terminal with the progress. */
function showProgress(name: string, text: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r${name} ${text}   `);
}
