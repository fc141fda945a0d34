import type { FleetWorker } from '@svc/store';
import { Command } from 'commander';
import { formatAge, formatMib, formatTable } from '../../output/format.ts';

const HEADING = ['WORKER', 'STATE', 'SANDBOXES', 'MEMORY', 'SEEN', 'VERSION', 'IMAGES'];

/** `svc worker list` */
export function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the workers of the fleet; needs the database of its control planes')
    .option('--json', 'print the workers as JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { withFleet } = await import('../../service/fleet/operator-fleet.ts');
      const workers = await withFleet((fleet) => fleet.list());
      if (json) console.log(JSON.stringify(workers, null, 2));
      else console.log(formatTable([HEADING, ...workers.map(cellsOf)]));
    });
}

function cellsOf(worker: FleetWorker): string[] {
  const images = worker.templates.map(({ template, image, ready }) =>
    ready ? `${template} ${image}` : `${template} (not ready)`,
  );
  return [
    worker.worker_id,
    worker.standing,
    String(worker.sandboxes),
    `${formatMib(worker.reserved_memory_mib)} of ${formatMib(worker.memory_mib)}`,
    `${formatAge(worker.last_seen_at.toISOString())} ago`,
    worker.version,
    images.join(', '),
  ];
}
