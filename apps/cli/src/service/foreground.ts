import { type Config, unknownVariables } from '@svc/config';
import { outliveReaders } from '../output/outlive-readers.ts';
import { Progress } from '../output/progress.ts';
import { OWN_VARIABLES } from '../own-variables.ts';
import { serve } from './serve.ts';
import type { ServiceRecord } from './service-record.ts';

/** Serves in this process. When a `svc up --detach` started it, tells that one about its readiness. */
export async function runInForeground(config: Config): Promise<number> {
  outliveReaders();
  const progress = new Progress();
  for (const name of unknownVariables(process.env, OWN_VARIABLES)) {
    progress.line(`svc: ${name} is set and means nothing to svc; is it misspelt?`);
  }
  return serve({ config, prefix: commandPrefix(), progress, onReady: reportReady });
}

/** What a proposed command needs in front to find this service. */
function commandPrefix(): string {
  const directory = process.env.SVC_DATA_DIR;
  if (directory === undefined || directory === '') return '';
  return `SVC_DATA_DIR=${directory} `;
}

function reportReady(record: ServiceRecord): void {
  if (process.send === undefined) return;
  process.send({ ready: record }, () => process.disconnect?.());
}
