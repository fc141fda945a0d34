import type { ServiceStatus } from './service-status.ts';

/** The status as lines for a person. */
export function statusText(status: ServiceStatus): string {
  const lines: (readonly [string, string | null])[] = [
    ['state', status.state],
    ['base_url', status.base_url],
    ['runtime_url', status.runtime_url],
    ['ca_file', status.ca_file],
    ['data_dir', status.data_dir],
    ['log', status.log_file],
    ['version', status.version],
    ['pid', status.pid === null ? null : String(status.pid)],
    ['since', status.started_at],
    ...status.workers.map(
      ({ worker_id, accelerator }) => ['worker', `${worker_id} (${accelerator})`] as const,
    ),
    ...status.images.map(
      ({ template, id, ready }) =>
        ['image', `${template} ${id}${ready ? '' : ', not ready'}`] as const,
    ),
  ];
  const shown = lines.filter((line) => line[1] !== null);
  const next = status.state === 'stopped' ? ['', 'Start it with `svc up`.'] : [];
  return [...shown.map(([name, value]) => `${name.padEnd(12)} ${value}`), ...next].join('\n');
}
