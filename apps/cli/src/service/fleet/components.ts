import type { ComponentKind } from '@svc/contract';
import { readCa } from '../../connection/ca-file.ts';
import { CliError } from '../../output/errors.ts';
import { Progress } from '../../output/progress.ts';
import { hasConfiguredSecret } from '../start/cluster-secrets.ts';
import { startControlPlaneComponent } from '../start/control-plane.ts';
import { openFollowedTls } from '../start/followed-tls.ts';
import { enrol, openIdentity } from '../start/identity.ts';
import { startLocalWorker } from '../start/local-worker.ts';
import { openHost } from '../start/microvm-host.ts';
import { checkPorts, runtimeListeners } from '../start/ports.ts';
import { startRuntimeComponent } from '../start/runtime-host.ts';
import { drainTask } from '../stop/drain-plan.ts';
import { type FleetContext, runComponent } from './run-component.ts';

/** `svc control-plane`: runs one of the control planes that share a database. Resolves with the exit code. */
export function runControlPlane(): Promise<number> {
  return runComponent('control-plane', async (context) => {
    const { config } = context;
    if (!hasConfiguredSecret(config) || config.databaseUrl === undefined) {
      throw new CliError(
        'fleet_incomplete',
        'a control plane needs the cluster secret and the database of its fleet',
        {
          next: 'set SVC_DATABASE_URL, and SVC_CLUSTER_SECRET_FILE or SVC_CLUSTER_SECRET, to the same values on every control plane',
        },
      );
    }
    const tls = await openFollowedTls(context);
    const { localUrl, baseUrl } = await startControlPlaneComponent(context, tls);
    context.logger.info({ url: localUrl }, 'control plane is ready');
    return { base_url: baseUrl, ...(tls.caFile === undefined ? {} : { ca_file: tls.caFile }) };
  });
}

/** `svc runtime`: runs one of the runtime hosts of a fleet. Resolves with the exit code. */
export function runRuntimeHost(): Promise<number> {
  return runComponent('runtime', async (context) => {
    await checkPorts(runtimeListeners(context.config));
    const { identity, controlPlane } = await join(context, 'runtime');
    const tls = await openFollowedTls(context);
    const { localUrl, runtimeUrl } = await startRuntimeComponent(
      context,
      identity,
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
    const { identity, controlPlane } = await join(context, 'worker');
    const progress = new Progress(process.stderr);
    const microvms = await openHost(
      { ...context, progress },
      identity,
      Promise.resolve(controlPlane),
    );
    const { worker, summary } = await startLocalWorker(
      context,
      identity,
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

/**
 * The identity of a component, which enrols, and the address of its control plane.
 * @throws CliError `fleet_incomplete`, `not_enrolled`, `enrolment_refused`
 */
async function join({ config, logger, signal }: FleetContext, kind: ComponentKind) {
  const { controlPlaneUrl: url, caFile, enrolmentToken: token } = config;
  if (url === undefined) {
    throw new CliError('fleet_incomplete', `a ${kind} needs the address of its control plane`, {
      next: 'set SVC_CONTROL_PLANE_URL',
    });
  }
  if (hasConfiguredSecret(config)) {
    logger.warn(
      'the cluster secret is only for control planes: whoever breaks into this machine has the whole fleet. Remove SVC_CLUSTER_SECRET and SVC_CLUSTER_SECRET_FILE here',
    );
  }
  const ca = caFile === undefined ? undefined : await readCa(caFile);
  const controlPlane = { url, ca };
  const identity = await openIdentity(config, kind);
  await enrol({ config, kind, identity, controlPlane, token, logger, signal });
  return { identity, controlPlane };
}
