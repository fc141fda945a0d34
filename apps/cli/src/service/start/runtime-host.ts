import { publicUrl } from '@svc/config';
import type { ComponentIdentity } from '@svc/service-kit/tokens';
import { drainTask } from '../stop/drain-plan.ts';
import type { ComponentContext } from './component.ts';
import { listening, runtimeListeners } from './ports.ts';
import type { ServiceTls } from './tls.ts';

const CLOSE_TIMEOUT_MS = 15_000;

/** The address of a control plane, and the CA to trust for it. */
export interface ControlPlaneAddress {
  readonly url: string;
  readonly ca: string | undefined;
}

/** A running runtime host. */
export interface StartedRuntime {
  /** Its address for this machine. */
  readonly localUrl: string;
  /** Its public address. */
  readonly runtimeUrl: string;
}

/**
 * Starts a runtime host. It may start before its control plane; WebSocket upgrades wait for the address of that.
 * @throws CliError `port_in_use`, `cannot_listen`
 */
export async function startRuntimeComponent(
  { config, logger, shutdown, drain }: Omit<ComponentContext, 'keepSandboxes'>,
  identity: ComponentIdentity,
  tls: ServiceTls,
  controlPlane: ControlPlaneAddress | Promise<ControlPlaneAddress>,
): Promise<StartedRuntime> {
  const { startRuntimeHost } = await import('@svc/runtime');
  const runtime = await listening(runtimeListeners(config), () =>
    startRuntimeHost({
      config,
      logger: logger.child({ component: 'runtime' }),
      identity,
      tls: tls.server,
      controlPlane,
    }),
  );
  shutdown.add(
    drainTask('runtime host, new connections', drain, (times, signal) =>
      runtime.drain(times, signal),
    ),
  );
  shutdown.add({
    name: 'runtime host',
    phase: 'disconnect',
    deadlineMs: CLOSE_TIMEOUT_MS,
    run: () => runtime.close(),
  });
  const port = Number(new URL(runtime.url).port);
  const address = { ...config.runtimeListen, port };
  return {
    localUrl: runtime.url,
    runtimeUrl: publicUrl(config.runtimeUrl, 'wss', config, address),
  };
}
