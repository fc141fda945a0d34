import { readCa } from '../../connection/ca-file.ts';
import { CliError } from '../../output/cli-error.ts';
import { startRuntimePiece } from '../start/runtime.ts';
import { openTls } from '../start/tls.ts';
import { runPiece } from './run-piece.ts';

/** `svc runtime`: one of any number of runtime hosts, for control planes elsewhere. */
export function runRuntime(): Promise<number> {
  return runPiece(async (context) => {
    const { clusterSecret: secret, controlPlaneUrl: url, caFile } = context.config;
    if (secret === undefined || url === undefined) {
      throw new CliError(
        'fleet_incomplete',
        'a runtime host of a fleet needs to know its control plane',
        {
          next: 'set SVC_CONTROL_PLANE_URL, and SVC_CLUSTER_SECRET to the value of the control plane',
        },
      );
    }
    const [tls, ca] = await Promise.all([
      openTls(context.config, context.places),
      caFile === undefined ? undefined : readCa(caFile),
    ]);
    const { localUrl, runtimeUrl } = await startRuntimePiece({ ...context, secret }, tls, {
      url,
      ca,
    });
    context.logger.info({ url: localUrl }, 'runtime host is ready');
    return {
      runtime_url: runtimeUrl,
      ...(tls.caFile === undefined ? {} : { ca_file: tls.caFile }),
    };
  });
}
