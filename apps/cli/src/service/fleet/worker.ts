import { readCa } from '../../connection/ca-file.ts';
import { CliError } from '../../output/cli-error.ts';
import { Progress } from '../../output/progress.ts';
import { openHost } from '../start/host.ts';
import { startWorkerPiece } from '../start/worker.ts';
import { runPiece } from './run-piece.ts';

/** `svc worker`: the sandboxes of this machine, for control planes elsewhere. */
export function runWorker(): Promise<number> {
  return runPiece(async (context) => {
    const { clusterSecret: secret, controlPlaneUrl, caFile } = context.config;
    if (secret === undefined || controlPlaneUrl === undefined) {
      throw new CliError(
        'fleet_incomplete',
        'a worker of a fleet needs to know its control plane',
        {
          next: 'set SVC_CONTROL_PLANE_URL, and SVC_CLUSTER_SECRET to the value of the control plane',
        },
      );
    }
    const ca = caFile === undefined ? undefined : await readCa(caFile);
    const microvms = await openHost({ ...context, progress: new Progress(process.stderr) });
    const worker = await startWorkerPiece(
      { ...context, secret },
      { url: controlPlaneUrl, ca },
      microvms,
    );
    context.logger.info({ worker }, 'worker is ready');
    return { workers: [worker] };
  });
}
