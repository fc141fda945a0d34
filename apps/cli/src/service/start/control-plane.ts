import { publicUrl } from '@svc/config';
import type { Piece } from './piece.ts';
import { listening } from './ports.ts';
import type { ServiceTls } from './tls.ts';

const END_MS = 45_000;

/** A control plane that serves. */
export interface StartedControlPlane {
  /** Where this machine reaches it. */
  readonly localUrl: string;
  /** Where the public reaches it. */
  readonly baseUrl: string;
  readonly tls: ServiceTls;
}

/** Starts a control plane on its database. */
export async function startControlPlanePiece(
  piece: Omit<Piece, 'keepSandboxes'>,
  tls: ServiceTls,
): Promise<StartedControlPlane> {
  const { config, logger, secret, shutdown } = piece;
  const { startControlPlane } = await import('@svc/control-plane');
  // Not given the signal: it has to hear the worker's last words before it ends.
  const controlPlane = await listening({ setting: 'SVC_LISTEN', ...config.listen }, () =>
    startControlPlane({
      config,
      logger: logger.child({ component: 'control-plane' }),
      clusterSecret: secret,
      tls: tls.server,
    }),
  );
  shutdown.add({
    name: 'control plane, to the public',
    phase: 'refuse',
    deadlineMs: END_MS,
    run: () => controlPlane.refuse(),
  });
  shutdown.add({
    name: 'control plane',
    phase: 'close',
    deadlineMs: END_MS,
    run: () => controlPlane.close(),
  });
  const localUrl = controlPlane.url;
  const port = Number(new URL(localUrl).port);
  return { localUrl, baseUrl: publicUrl(config.baseUrl, 'https', config, port), tls };
}
