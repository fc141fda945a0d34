import { publicUrl } from '@svc/config';
import { SvcClient } from '@svc/sdk';
import { explainDatabaseError } from '../operator-database.ts';
import { drainTask } from '../stop/drain-plan.ts';
import { clusterSecrets, rereadClusterSecrets } from './cluster-secrets.ts';
import type { ComponentContext } from './component.ts';
import { followUntilShutdown } from './follow-files.ts';
import { controlPlaneListeners, listening } from './ports.ts';
import type { ServiceTls } from './tls.ts';

const CLOSE_TIMEOUT_MS = 45_000;

/** A running control plane. */
export interface StartedControlPlane {
  /** Its address for this machine. */
  readonly localUrl: string;
  /** The same for components. */
  readonly internalUrl: string;
  /** Its public address. */
  readonly baseUrl: string;
  readonly tls: ServiceTls;
}

/**
 * Starts a control plane and its database, if that is embedded.
 * @throws CliError `port_in_use`, `cannot_listen`, `restore_unfinished`, `cluster_secret_unusable`
 */
export async function startControlPlaneComponent(
  context: Omit<ComponentContext, 'keepSandboxes'>,
  tls: ServiceTls,
): Promise<StartedControlPlane> {
  const { config, logger, signal, shutdown, drain } = context;
  const { ClusterSecrets, startControlPlane } = await import('@svc/control-plane');
  const secrets = await ClusterSecrets.open(await clusterSecrets(config));
  // The signal does not close it, because it must receive the worker's last events before it stops.
  const controlPlane = await listening(controlPlaneListeners(config), () =>
    startControlPlane({
      config,
      logger: logger.child({ component: 'control-plane' }),
      clusterSecrets: secrets,
      tls: tls.server,
      starting: signal,
    }).catch(explainDatabaseError),
  );
  if (config.clusterSecret === undefined) {
    const reread = async () => secrets.replace(await rereadClusterSecrets(config));
    followUntilShutdown('cluster secret', reread, context);
  }
  shutdown.add(
    drainTask('control plane, public API', drain, (times, signal) =>
      controlPlane.drain(times, signal),
    ),
  );
  shutdown.add({
    name: 'control plane',
    phase: 'close',
    deadlineMs: CLOSE_TIMEOUT_MS,
    run: () => controlPlane.close(),
  });
  const { url: localUrl, internalUrl } = controlPlane;
  const port = Number(new URL(localUrl).port);
  const address = { ...config.listen, port };
  const baseUrl = publicUrl(config.baseUrl, 'https', config, address);
  return { localUrl, internalUrl, baseUrl, tls };
}

/** Creates a client for the control plane of this process that bypasses its public address. The caller closes it. */
export function localClient(
  { localUrl, tls }: Pick<StartedControlPlane, 'localUrl' | 'tls'>,
  apiKey?: string,
): SvcClient {
  return new SvcClient({ baseUrl: localUrl, apiKey, ca: tls.ca });
}
