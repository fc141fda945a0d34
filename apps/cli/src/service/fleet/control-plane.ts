import { CliError } from '../../output/cli-error.ts';
import { startControlPlanePiece } from '../start/control-plane.ts';
import { openTls } from '../start/tls.ts';
import { runPiece } from './run-piece.ts';

/** `svc control-plane`: one of any number of control planes on one database. */
export function runControlPlane(): Promise<number> {
  return runPiece(async (context) => {
    const { clusterSecret, databaseUrl } = context.config;
    if (clusterSecret === undefined || databaseUrl === undefined) {
      throw new CliError(
        'fleet_incomplete',
        'a control plane of a fleet needs what the others have',
        {
          next: 'set SVC_CLUSTER_SECRET and SVC_DATABASE_URL to the same values on every control plane',
        },
      );
    }
    const tls = await openTls(context.config, context.places);
    const piece = { ...context, secret: clusterSecret };
    const { localUrl, baseUrl } = await startControlPlanePiece(piece, tls);
    context.logger.info({ url: localUrl }, 'control plane is ready');
    return { base_url: baseUrl, ...(tls.caFile === undefined ? {} : { ca_file: tls.caFile }) };
  });
}
