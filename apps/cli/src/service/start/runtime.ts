import { publicUrl } from '@svc/config';
import type { Piece } from './piece.ts';
import { listening } from './ports.ts';
import type { ServiceTls } from './tls.ts';

const END_MS = 15_000;

/** Where a control plane is, for the pieces that ask it. */
export interface ControlPlaneAddress {
  readonly url: string;
  readonly ca: string | undefined;
}

/** A runtime host that serves. */
export interface StartedRuntime {
  /** Where this machine reaches it. */
  readonly localUrl: string;
  /** Where the public reaches it. */
  readonly runtimeUrl: string;
}

/** Starts a runtime host. It may start before its control plane: upgrades wait for that. */
export async function startRuntimePiece(
  { config, logger, secret, shutdown }: Omit<Piece, 'keepSandboxes'>,
  tls: ServiceTls,
  controlPlane: ControlPlaneAddress | Promise<ControlPlaneAddress>,
): Promise<StartedRuntime> {
  const { startRuntimeHost } = await import('@svc/runtime');
  const listener = { setting: 'SVC_RUNTIME_LISTEN', ...config.runtimeListen } as const;
  const runtime = await listening(listener, () =>
    startRuntimeHost({
      config,
      logger: logger.child({ component: 'runtime' }),
      clusterSecret: secret,
      tls: tls.server,
      controlPlane,
    }),
  );
  shutdown.add({
    name: 'runtime host',
    phase: 'disconnect',
    deadlineMs: END_MS,
    run: () => runtime.close(),
  });
  const port = Number(new URL(runtime.url).port);
  return { localUrl: runtime.url, runtimeUrl: publicUrl(config.runtimeUrl, 'wss', config, port) };
}
