import { setTimeout as sleep } from 'node:timers/promises';
import { cpuMs, proportionalMib } from '@svc/service-driver';
import { timed } from '../measure/in-turns.ts';
import type { Row, RowContext, RowResult } from '../measure/row.ts';
import { type Summary, summarise } from '../measure/statistics.ts';

const COUNT = 50;
const MEMORY_MIB = 512;
const AT_ONCE = 4;
const AT_MOST_MIB = 80;
const IDLE_SECONDS = 20;

/** A full machine: the memory of each sandbox, the CPU time of idle ones, and whether every one answers. */
export const manySandboxes: Row = {
  name: 'many-sandboxes',
  pool: 2,
  async run(context) {
    const { service, progress } = context;
    const { sandboxes } = service.client;
    const ids: string[] = [];
    try {
      const creates = await eachOf(COUNT, async () => {
        const request = { template: 'standard', memory_mib: MEMORY_MIB } as const;
        const { vm_id: id } = await sandboxes.create({ ...request, idle_timeout_seconds: 7200 });
        ids.push(id);
        progress(`${ids.length}/${COUNT}`);
      });
      const execs = await eachOf(COUNT, async (index) => {
        const id = ids[index] ?? '';
        const { output, exit_code } = await sandboxes.exec(id, 'echo here');
        if (output !== 'here\n' || exit_code !== 0)
          throw new Error(`${id} did not answer correctly`);
      });
      await service.settled();
      const pids = await processesOf(context, ids);
      const memory = summarise(await Promise.all(pids.map(proportionalMib)));
      const cpu = await idleCpu(service.pid, pids);
      return results({ creates: summarise(creates), execs: summarise(execs), memory, cpu });
    } finally {
      await Promise.all(ids.map((id) => sandboxes.delete(id)));
    }
  },
};

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
  if (pids.length !== COUNT) throw new Error(`${pids.length} VMs, not ${COUNT}`);
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

function results({ creates, execs, memory, cpu }: Found): RowResult[] {
  const common = { name: 'many-sandboxes', against: '', notes: [], ok: true, bound: 'reported' };
  const total = cpu.vms.mean * COUNT;
  return [
    {
      ...common,
      what: `create of ${COUNT} sandboxes of ${MEMORY_MIB} MiB, ${AT_ONCE} at a time`,
      unit: 'ms',
      ours: creates,
      figure: { text: `p95 ${creates.p95.toFixed(0)} ms`, value: creates.p95 },
      bound: 'all succeed',
    },
    {
      ...common,
      what: `exec in each of ${COUNT} sandboxes, ${AT_ONCE} at a time`,
      unit: 'ms',
      ours: execs,
      figure: { text: `p95 ${execs.p95.toFixed(0)} ms`, value: execs.p95 },
      bound: 'all answer',
    },
    {
      ...common,
      what: `proportional memory of each of ${COUNT} sandboxes`,
      unit: 'MiB',
      ours: memory,
      figure: { text: `max ${memory.most.toFixed(1)} MiB`, value: memory.most },
      bound: `≤ ${AT_MOST_MIB} MiB`,
      ok: memory.most <= AT_MOST_MIB,
    },
    {
      ...common,
      what: `CPU of each of ${COUNT} idle sandboxes`,
      unit: '% core',
      ours: cpu.vms,
      figure: { text: `total ${total.toFixed(0)} %`, value: total },
      notes: [`the service’s own process used ${cpu.service.toFixed(1)} % of a core`],
    },
  ];
}
