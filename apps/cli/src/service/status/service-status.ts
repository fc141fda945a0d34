import type { Config } from '@svc/config';
import type { ImageInfo } from '@svc/microvm';
import { servicePlaces } from '../places.ts';
import { runningService, type WorkerSummary } from '../service-record.ts';

/** What `svc status` shows. The fields of a service that does not run are null. */
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

/** The service of the data directory, as it is now. */
export async function serviceStatus(config: Config): Promise<ServiceStatus> {
  const places = servicePlaces(config.dataDir);
  const { listImages } = await import('@svc/microvm');
  const [record, images] = await Promise.all([
    runningService(places.record),
    listImages(config.imageDir),
  ]);
  return {
    state: record?.state ?? 'stopped',
    base_url: record?.base_url ?? null,
    runtime_url: record?.runtime_url ?? null,
    data_dir: places.dataDir,
    ca_file: record?.ca_file ?? null,
    version: record?.version ?? null,
    pid: record?.process.pid ?? null,
    started_at: record?.started_at ?? null,
    log_file: places.log,
    workers: record?.workers ?? [],
    images: images.map(({ template, id, ready }: ImageInfo) => ({ template, id, ready })),
  };
}
