import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config } from '@svc/config';
import { listenAddress } from '@svc/service-kit/addresses';
import { CliError } from '../../output/errors.ts';

/** An address to listen on, and the setting that names it. */
export interface Listener {
  readonly setting:
    | 'SVC_LISTEN'
    | 'SVC_INTERNAL_LISTEN'
    | 'SVC_RUNTIME_LISTEN'
    | 'SVC_RUNTIME_INTERNAL_LISTEN';
  readonly host: string;
  readonly port: number;
}

/** The addresses of a control plane. */
export function controlPlaneListeners({ listen, internalListen }: Config): readonly Listener[] {
  return [
    { setting: 'SVC_LISTEN', ...listen },
    ...(internalListen ? [{ setting: 'SVC_INTERNAL_LISTEN', ...internalListen } as const] : []),
  ];
}

/** The addresses of a runtime host. */
export function runtimeListeners(config: Config): readonly Listener[] {
  const { runtimeListen, runtimeInternalListen: internal } = config;
  return [
    { setting: 'SVC_RUNTIME_LISTEN', ...runtimeListen },
    ...(internal ? [{ setting: 'SVC_RUNTIME_INTERNAL_LISTEN', ...internal } as const] : []),
  ];
}

/** The error code of an attempt to listen on an address; undefined if it succeeds. */
export async function listenFailure({ host, port }: Listener): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen({ host: await listenAddress(host), port });
    await once(server, 'listening');
    return undefined;
  } catch (error) {
    return codeOf(error);
  } finally {
    server.close();
  }
}

/**
 * Checks every address before any component starts.
 * @throws CliError `port_in_use`, `cannot_listen`
 */
export async function checkPorts(listeners: readonly Listener[]): Promise<void> {
  for (const listener of listeners) {
    const failure = await listenFailure(listener);
    if (failure !== undefined) throw listenError(listener, failure);
  }
}

/** Runs `start`, and reports an address that has been taken in the meantime like {@link checkPorts} does. */
export async function listening<T>(
  listeners: readonly Listener[],
  start: () => Promise<T>,
): Promise<T> {
  try {
    return await start();
  } catch (error) {
    const isListenError =
      error instanceof Error && 'syscall' in error && error.syscall === 'listen';
    if (!isListenError) throw error;
    const refused = listeners.find(({ port }) => 'port' in error && error.port === port);
    throw refused === undefined ? error : listenError(refused, codeOf(error), error);
  }
}

function listenError(
  { setting, host, port }: Listener,
  failure: string,
  cause?: unknown,
): CliError {
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  if (failure !== 'EADDRINUSE') {
    return new CliError('cannot_listen', `cannot listen on ${address} (${failure})`, {
      next: `set ${setting} to an address of this machine`,
      cause,
    });
  }
  return new CliError('port_in_use', `another program is already listening on ${address}`, {
    next: `stop it (\`ss -ltnp sport = :${port}\` shows it), or set ${setting} to another port`,
    cause,
  });
}

function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error) return String(error.code);
  return String(error);
}
