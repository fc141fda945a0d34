import type { Template } from '@svc/contract';
import { timed } from '../measure/in-turns.ts';
import type { BenchService } from './bench-service.ts';

/** Milliseconds from a create to its answer. Deletes the sandbox afterwards. */
export async function timeCreate(service: BenchService, template?: Template): Promise<number> {
  let id = '';
  const took = await timed(async () => {
    id = (await service.createSandbox(template === undefined ? {} : { template })).id;
  });
  await service.client.sandboxes.delete(id);
  return took;
}
