import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Config } from '@svc/config';
import { CliError } from '../../output/cli-error.ts';

/** An address to listen on, and the setting that names it. */
export interface Listener {
  readonly setting: 'SVC_LISTEN' | 'SVC_RUNTIME_LISTEN';
  readonly host: string;
  readonly port: number;
}

/** Where the service listens for the public. */
export function publicListeners({ listen, runtimeListen }: Config): readonly Listener[] {
  return [
    { setting: 'SVC_LISTEN', ...listen },
    { setting: 'SVC_RUNTIME_LISTEN', ...runtimeListen },
  ];
}

/** Why an address cannot be listened on now; undefined when it can. */
export async function listenFailure({ host, port }: Listener): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, 'listening');
    return undefined;
  } catch (error) {
    return codeOf(error);
  } finally {
    server.close();
  }
}

/**
 * Looks at every address before anything is started for it.
 * @throws CliError `port_in_use`, `cannot_listen`
 */
export async function checkPorts(listeners: readonly Listener[]): Promise<void> {
  for (const listener of listeners) {
    const failure = await listenFailure(listener);
    if (failure !== undefined) throw listenError(listener, failure);
  }
}

/** Starts what listens; an address that was taken meanwhile is reported like {@link checkPorts} does. */
export async function listening<T>(listener: Listener, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    const isOfListening =
      error instanceof Error && 'syscall' in error && error.syscall === 'listen';
    throw isOfListening ? listenError(listener, codeOf(error), error) : error;
  }
}

function listenError(
  { setting, host, port }: Listener,
  failure: string,
  cause?: unknown,
): CliError {
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  if (failure !== 'EADDRINUSE') {
    return new CliError('cannot_listen', `${address} cannot be listened on (${failure})`, {
      next: `set ${setting} to an address of this machine`,
      cause,
    });
  }
  return new CliError('port_in_use', `another program listens on ${address} already`, {
    next: `end it (\`ss -ltnp sport = :${port}\` names it), or set ${setting} to another port`,
    cause,
  });
}

function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error) return String(error.code);
  return String(error);
}
