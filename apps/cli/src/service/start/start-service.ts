import type { ComponentKind } from '@svc/contract';
import { Shutdown } from '@svc/service-kit/process';
import type { ComponentIdentity } from '@svc/service-kit/tokens';
import type { Progress } from '../../output/progress.ts';
import type { WorkerSummary } from '../service-record.ts';
import { allOrAbort } from './all-or-abort.ts';
import { clusterSecrets } from './cluster-secrets.ts';
import type { ComponentContext } from './component.ts';
import { type StartedControlPlane, startControlPlaneComponent } from './control-plane.ts';
import { openFollowedTls } from './followed-tls.ts';
import { enrol, localToken, openIdentity } from './identity.ts';
import { startLocalWorker } from './local-worker.ts';
import { openHost } from './microvm-host.ts';
import { checkPorts, controlPlaneListeners, runtimeListeners } from './ports.ts';
import { type ControlPlaneAddress, startRuntimeComponent } from './runtime-host.ts';

export interface StartOptions extends Omit<ComponentContext, 'shutdown'> {
  readonly progress: Progress;
}

/** A service with all components running. */
export interface StartedService extends StartedControlPlane {
  /** The public address of the runtime host. */
  readonly runtimeUrl: string;
  readonly workers: readonly WorkerSummary[];
  /** Stops every component in order. */
  readonly shutdown: Shutdown;
}

/**
 * Starts every component on this machine; they talk over the same internal HTTPS as in a fleet. Independent components
 * start concurrently. If the start fails, no component is left running.
 * @throws CliError `port_in_use`, `cannot_listen`
 */
export async function startService(options: StartOptions): Promise<StartedService> {
  const { config, progress } = options;
  const shutdown = new Shutdown(options.logger);
  await checkPorts([...controlPlaneListeners(config), ...runtimeListeners(config)]);
  const context = { ...options, shutdown };
  const tls = await openFollowedTls(context);
  const [secret] = await clusterSecrets(config);
  const [runtime, worker] = await Promise.all([
    openIdentity(config, 'runtime'),
    openIdentity(config, 'worker'),
  ]);
  const address = Promise.withResolvers<ControlPlaneAddress>();
  // If the start fails before the control plane is running, nothing may be waiting for this promise.
  address.promise.catch(() => undefined);
  /** The address of the control plane once it knows the key of a component. */
  const enrolled = async (kind: ComponentKind, identity: ComponentIdentity) => {
    const controlPlane = await address.promise;
    const token = await localToken(secret, kind, identity);
    await enrol({ ...context, kind, identity, controlPlane, token });
    return controlPlane;
  };
  const [forRuntime, forWorker] = [enrolled('runtime', runtime), enrolled('worker', worker)];
  for (const promise of [forRuntime, forWorker]) promise.catch(() => undefined);
  try {
    // Starts first, because the control plane returns its address to customers.
    const { runtimeUrl } = await progress.step(
      'runtime host',
      () => startRuntimeComponent(context, runtime, tls, forRuntime),
      ({ localUrl }) => localUrl,
    );
    const controlPlaneContext = { ...context, config: { ...config, runtimeUrl } };
    const [controlPlane, host] = await allOrAbort(
      options.signal,
      async (signal) => {
        const started = await progress.step(
          'control plane',
          () => startControlPlaneComponent({ ...controlPlaneContext, signal }, tls),
          ({ localUrl }) => localUrl,
        );
        address.resolve({ url: started.internalUrl, ca: tls.ca });
        return started;
      },
      (signal) => openHost({ ...context, signal }, worker, forWorker),
    );
    const { summary } = await progress.step(
      'worker',
      async () => startLocalWorker(context, worker, await forWorker, host),
      (started) => started.summary.worker_id,
    );
    return { ...controlPlane, runtimeUrl, workers: [summary], shutdown };
  } catch (error) {
    address.reject(error);
    await shutdown.run('the start failed');
    throw error;
  }
}
