import { readCa } from '../../connection/ca-file.ts';
import { CliError } from '../../output/errors.ts';
import { Progress } from '../../output/progress.ts';
import { startControlPlaneComponent } from '../start/control-plane.ts';
import { openFollowedTls } from '../start/followed-tls.ts';
import { startLocalWorker } from '../start/local-worker.ts';
import { openHost } from '../start/microvm-host.ts';
import { startRuntimeComponent } from '../start/runtime-host.ts';
import { drainTask } from '../stop/drain-plan.ts';
import { type FleetContext, runComponent } from './run-component.ts';

/** `svc control-plane`: runs one of the control planes that share a database. Resolves with the exit code. */
export function runControlPlane(): Promise<number> {
  return runComponent('control-plane', async (context) => {
    const { clusterSecret: secret, databaseUrl } = context.config;
    if (secret === undefined || databaseUrl === undefined) {
      throw new CliError(
        'fleet_incomplete',
        'a control plane needs the cluster secret and the database of its fleet',
        {
          next: 'set SVC_CLUSTER_SECRET and SVC_DATABASE_URL to the same values on every control plane',
        },
      );
    }
    const tls = await openFollowedTls(context);
    const { localUrl, baseUrl } = await startControlPlaneComponent({ ...context, secret }, tls);
    context.logger.info({ url: localUrl }, 'control plane is ready');
    return { base_url: baseUrl, ...(tls.caFile === undefined ? {} : { ca_file: tls.caFile }) };
  });
}

/** `svc runtime`: runs one of the runtime hosts of a fleet. Resolves with the exit code. */
export function runRuntimeHost(): Promise<number> {
  return runComponent('runtime', async (context) => {
    const { secret, controlPlane } = await controlPlaneOf(context, 'a runtime host');
    const tls = await openFollowedTls(context);
    const { localUrl, runtimeUrl } = await startRuntimeComponent(
      { ...context, secret },
      tls,
      controlPlane,
    );
    context.logger.info({ url: localUrl }, 'runtime host is ready');
    return {
      runtime_url: runtimeUrl,
      ...(tls.caFile === undefined ? {} : { ca_file: tls.caFile }),
    };
  });
}

/** `svc worker`: runs the worker of this machine as part of a fleet. Resolves with the exit code. */
export function runWorker(): Promise<number> {
  return runComponent('worker', async (context) => {
    const { secret, controlPlane } = await controlPlaneOf(context, 'a worker');
    const progress = new Progress(process.stderr);
    const microvms = await openHost(
      { ...context, secret, progress },
      Promise.resolve(controlPlane),
    );
    const { worker, summary } = await startLocalWorker(
      { ...context, secret },
      controlPlane,
      microvms,
      () => context.endSandboxes('an order to drain'),
    );
    context.shutdown.add(
      drainTask('work in progress', context.drain, ({ workMs }, signal) =>
        worker.drain(workMs, signal),
      ),
    );
    context.logger.info({ worker: summary }, 'worker is ready');
    return { workers: [summary] };
  });
}

/** Reads the cluster secret and the address of the control plane. @throws CliError `fleet_incomplete` */
async function controlPlaneOf({ config }: FleetContext, component: string) {
  const { clusterSecret: secret, controlPlaneUrl: url, caFile } = config;
  if (secret === undefined || url === undefined) {
    throw new CliError(
      'fleet_incomplete',
      `${component} needs the cluster secret and the address of its control plane`,
      {
        next: 'set SVC_CONTROL_PLANE_URL, and SVC_CLUSTER_SECRET to the value of the control plane',
      },
    );
  }
  const ca = caFile === undefined ? undefined : await readCa(caFile);
  return { secret, controlPlane: { url, ca } };
}
