import type { Config } from '@svc/config';
import { servicePaths } from './paths.ts';
import { runningService, type WorkerSummary } from './service-record.ts';

/** The status of a service, as `svc status --json` prints it. Without a running service, its fields are null. */
export interface ServiceStatus {
  readonly state: 'stopped' | 'starting' | 'ready';
  readonly base_url: string | null;
  readonly runtime_url: string | null;
  readonly data_dir: string;
  readonly ca_file: string | null;
  readonly version: string | null;
  readonly pid: number | null;
  readonly started_at: string | null;
  readonly log_file: string;
  readonly workers: readonly WorkerSummary[];
  readonly images: readonly { template: string; id: string; ready: boolean }[];
}

/** Reads the current status of the service of the data directory. */
export async function serviceStatus(config: Config): Promise<ServiceStatus> {
  const paths = servicePaths(config.dataDir);
  const { listImages } = await import('@svc/microvm');
  const [record, images] = await Promise.all([
    runningService(paths.record),
    listImages(config.imageDir),
  ]);
  return {
    state: record?.state ?? 'stopped',
    base_url: record?.base_url ?? null,
    runtime_url: record?.runtime_url ?? null,
    data_dir: paths.dataDir,
    ca_file: record?.ca_file ?? null,
    version: record?.version ?? null,
    pid: record?.process.pid ?? null,
    started_at: record?.started_at ?? null,
    log_file: paths.log,
    workers: record?.workers ?? [],
    images: images.map(({ template, id, ready }) => ({ template, id, ready })),
  };
}

/** Formats the status for the terminal. */
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
      ({ worker_id, accelerator, url }) =>
        ['worker', `${worker_id} (${accelerator}) at ${url}`] as const,
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
