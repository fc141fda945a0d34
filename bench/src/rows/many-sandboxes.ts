import { setTimeout as sleep } from 'node:timers/promises';
import type { Template } from '@svc/contract';
import { cpuMs, proportionalMib } from '@svc/service-driver';
import { timed } from '../measure/in-turns.ts';
import type { Row, RowContext, RowResult } from '../measure/row.ts';
import { type Summary, summarise } from '../measure/statistics.ts';

const AT_ONCE = 4;
const IDLE_SECONDS = 20;

interface ManyRow {
  readonly name: string;
  /** Idle VMs in the pool. */
  readonly pool: number;
  readonly template: Template;
  readonly count: number;
  readonly memoryMib: number;
  /** A command that shows that a sandbox works, and its output. */
  readonly command: string;
  readonly output: string;
  /** Largest proportional memory of a sandbox. */
  readonly atMostMib?: number;
}

/** A full machine: the memory of each sandbox, the CPU time of idle ones, and whether every one answers. */
export const manySandboxes = manyOf({
  name: 'many-sandboxes',
  pool: 2,
  template: 'standard',
  count: 50,
  memoryMib: 512,
  command: 'echo here',
  output: 'here\n',
  atMostMib: 80,
});

/** The same with sandboxes of 1 GiB that have a desktop and a browser. */
export const manyDesktops = manyOf({
  name: 'many-desktops',
  pool: 0,
  template: 'cua',
  count: 10,
  memoryMib: 1024,
  command: "curl -sf http://127.0.0.1:7310/elements | grep -o 'Address and search bar'",
  output: 'Address and search bar\n',
});

function manyOf(row: ManyRow): Row {
  const { name, pool, template, count, memoryMib } = row;
  return {
    name,
    pool,
    // Rows of `standard` share a service.
    ...(template === 'standard' ? {} : { templates: [template] }),
    async run(context) {
      const { service, progress } = context;
      const { sandboxes } = service.client;
      const ids: string[] = [];
      try {
        const creates = await eachOf(count, async () => {
          const request = { template, memory_mib: memoryMib, idle_timeout_seconds: 7200 };
          ids.push((await sandboxes.create(request)).vm_id);
          progress(`${ids.length}/${count}`);
        });
        const execs = await eachOf(count, async (index) => {
          const id = ids[index] ?? '';
          const { output, exit_code } = await sandboxes.exec(id, row.command);
          if (output !== row.output || exit_code !== 0)
            throw new Error(`${id} did not answer correctly: ${output}`);
        });
        await service.settled();
        const pids = await processesOf(context, ids);
        const memory = summarise(await Promise.all(pids.map(proportionalMib)));
        const cpu = await idleCpu(service.pid, pids);
        return results(row, { creates: summarise(creates), execs: summarise(execs), memory, cpu });
      } finally {
        await Promise.all(ids.map((id) => sandboxes.delete(id)));
      }
    },
  };
}

/** Does the work `count` times, a few at a time, and returns the duration of each in milliseconds. */
async function eachOf(count: number, work: (index: number) => Promise<void>): Promise<number[]> {
  const took: number[] = [];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      took.push(await timed(() => work(index)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return took;
}

async function processesOf({ service }: RowContext, ids: readonly string[]): Promise<number[]> {
  const pids = (await service.vms()).flatMap(({ pid, vmId }) =>
    pid !== undefined && vmId !== undefined && ids.includes(vmId) ? [pid] : [],
  );
  if (pids.length !== ids.length) throw new Error(`${pids.length} VMs, not ${ids.length}`);
  return pids;
}

interface IdleCpu {
  /** Percent of one core, by VM. */
  readonly vms: Summary;
  /** Percent of one core, by the service's process. */
  readonly service: number;
}

async function idleCpu(service: number, vms: readonly number[]): Promise<IdleCpu> {
  const used = () => Promise.all([service, ...vms].map((pid) => cpuMs(pid)));
  const start = performance.now();
  const before = await used();
  await sleep(IDLE_SECONDS * 1000);
  const after = await used();
  const elapsed = performance.now() - start;
  const [ofService = 0, ...ofVms] = after.map(
    (ms, index) => ((ms - (before[index] ?? 0)) / elapsed) * 100,
  );
  return { vms: summarise(ofVms), service: ofService };
}

interface Found {
  readonly creates: Summary;
  readonly execs: Summary;
  readonly memory: Summary;
  readonly cpu: IdleCpu;
}

function results(
  { name, count, template, memoryMib, atMostMib }: ManyRow,
  { creates, execs, memory, cpu }: Found,
): RowResult[] {
  const common = { name, against: '', notes: [], ok: true, bound: 'reported' };
  const total = cpu.vms.mean * count;
  return [
    {
      ...common,
      what: `create of ${count} sandboxes of ${template} with ${memoryMib} MiB, ${AT_ONCE} at a time`,
      unit: 'ms',
      ours: creates,
      figure: { text: `p95 ${creates.p95.toFixed(0)} ms`, value: creates.p95 },
      bound: 'all succeed',
    },
    {
      ...common,
      what: `exec in each of ${count} sandboxes of ${template}, ${AT_ONCE} at a time`,
      unit: 'ms',
      ours: execs,
      figure: { text: `p95 ${execs.p95.toFixed(0)} ms`, value: execs.p95 },
      bound: 'all answer',
    },
    {
      ...common,
      what: `proportional memory of each of ${count} sandboxes of ${template}`,
      unit: 'MiB',
      ours: memory,
      figure: { text: `max ${memory.most.toFixed(1)} MiB`, value: memory.most },
      ...(atMostMib === undefined
        ? {}
        : { bound: `≤ ${atMostMib} MiB`, ok: memory.most <= atMostMib }),
    },
    {
      ...common,
      what: `CPU of each of ${count} idle sandboxes of ${template}`,
      unit: '% core',
      ours: cpu.vms,
      figure: { text: `total ${total.toFixed(0)} %`, value: total },
      notes: [`the service’s own process used ${cpu.service.toFixed(1)} % of a core`],
    },
  ];
}
