import type { Config } from '@svc/config';
import { Progress } from '../output/progress.ts';
import { ignoreOutputErrors } from '../process-lifetime.ts';
import { serve } from './serve.ts';
import type { ServiceRecord } from './service-record.ts';

/** Serves in this process. If `svc up --detach` started it, reports its readiness to that process. */
export async function runInForeground(config: Config): Promise<number> {
  ignoreOutputErrors();
  return serve({
    config,
    prefix: commandPrefix(),
    progress: new Progress(),
    onReady: reportReady,
  });
}

/** The prefix of suggested commands that makes them find this service. */
function commandPrefix(): string {
  const directory = process.env.SVC_DATA_DIR;
  if (directory === undefined || directory === '') return '';
  return `SVC_DATA_DIR=${directory} `;
}

function reportReady(record: ServiceRecord): void {
  if (process.send === undefined) return;
  process.send({ ready: record }, () => process.disconnect?.());
}
