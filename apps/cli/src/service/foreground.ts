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
    isDetached: process.send !== undefined,
    onReady: reportReady,
  });
}

/** The prefix of suggested commands that makes them find this service. */
function commandPrefix(): string {
  const directory = process.env.SVC_DATA_DIR;
  if (directory === undefined || directory === '') return '';
  return `SVC_DATA_DIR=${directory} `;
}

/** Tells the process that started this one, if it still waits, that the service is ready, and detaches from it. */
export function reportReady(record: ServiceRecord): void {
  if (!process.connected) return;
  process.send?.({ ready: record }, () => {
    // The other end may have closed the channel meanwhile.
    if (process.connected) process.disconnect();
  });
}
