import { existsSync } from 'node:fs';
import { TEMPLATES, type Template } from '@svc/contract';
import { proportionalMib } from '@svc/service-driver';
import { inTurns } from '../measure/in-turns.ts';
import { type Row, type RowContext, type RowResult, ratioResult } from '../measure/row.ts';
import { summarise } from '../measure/statistics.ts';
import { timeCreate } from '../service/time-create.ts';

const BASE = 'standard';
/** Sandboxes of each template whose memory is measured. */
const COUNT = 3;

/** The templates that have a recipe, with `standard`, the one that the others are compared with, first. */
const BUILT: readonly Template[] = TEMPLATES.filter((template) =>
  existsSync(new URL(`../../../images/${template}/image.json`, import.meta.url)),
);

interface CreateRow {
  readonly name: string;
  /** Idle VMs of each template in the pool. */
  readonly pool: number;
  readonly how: string;
  readonly atMost: number;
}

/** The create of a sandbox of each template, compared with one of `standard`. */
function createOfTemplates({ name, pool, how, atMost }: CreateRow): Row {
  return {
    name,
    pool,
    templates: BUILT,
    async run(context) {
      const results: RowResult[] = [];
      for (const template of BUILT.filter((other) => other !== BASE)) {
        results.push(await compare(context, template));
      }
      return results;
    },
  };

  async function compare(
    { service, runs, progress }: RowContext,
    template: Template,
  ): Promise<RowResult> {
    const create = async (which: Template) => {
      await (pool === 0 ? service.settled() : service.rested());
      return timeCreate(service, which);
    };
    const samples = await inTurns({
      runs,
      ours: () => create(template),
      comparison: () => create(BASE),
      onTurn: (done) => progress(`${template} ${done}/${runs}`),
    });
    return ratioResult({
      name,
      what: `create of ${template} ${how}, request to 201`,
      against: `create of ${BASE} ${how}`,
      unit: 'ms',
      ...samples,
      atMost,
    });
  }
}

/** Creates that have to restore a VM. */
export const templateCreateEmptyPool = createOfTemplates({
  name: 'template-create-empty-pool',
  pool: 0,
  how: 'with an empty pool',
  atMost: 2,
});

/** Creates that receive an idle VM: the template makes no difference but that of the measurement. */
export const templateCreateFromPool = createOfTemplates({
  name: 'template-create-from-pool',
  pool: 1,
  how: 'from the pool',
  atMost: 1.25,
});

/** The memory of an idle sandbox of each template. */
export const templateMemory: Row = {
  name: 'template-memory',
  pool: 0,
  templates: BUILT,
  async run({ service, progress }) {
    const results: RowResult[] = [];
    for (const template of BUILT) {
      progress(template);
      const ids: string[] = [];
      try {
        while (ids.length < COUNT) ids.push((await service.createSandbox({ template })).id);
        await service.settled();
        const vms = await service.vms();
        const pids = vms.flatMap(({ pid, vmId }) =>
          pid !== undefined && vmId !== undefined && ids.includes(vmId) ? [pid] : [],
        );
        if (pids.length !== COUNT) throw new Error(`${pids.length} VMs, not ${COUNT}`);
        const memory = summarise(await Promise.all(pids.map(proportionalMib)));
        results.push({
          name: 'template-memory',
          what: `proportional memory of each of ${COUNT} idle sandboxes of ${template}`,
          against: '',
          unit: 'MiB',
          ours: memory,
          figure: { text: `max ${memory.most.toFixed(1)} MiB`, value: memory.most },
          bound: 'reported',
          ok: true,
          notes: [],
        });
      } finally {
        await Promise.all(ids.map((id) => service.client.sandboxes.delete(id)));
      }
    }
    return results;
  },
};
