import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import type { WorkerOptions } from './options.ts';

/** Where control planes reach this worker: the configured URL, or the address it listens on. */
export function reachableUrl(
  { config, listen }: Pick<WorkerOptions, 'config' | 'listen'>,
  bound: AddressInfo | string | null,
): string {
  if (config.workerUrl !== undefined) return config.workerUrl;
  const port = typeof bound === 'object' && bound !== null ? bound.port : listen.port;
  const host = isEveryAddress(listen.host) ? hostname() : listen.host;
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The names in the worker's certificate: all that callers may use. */
export function certificateNames({
  config,
  listen,
}: Pick<WorkerOptions, 'config' | 'listen'>): string[] {
  const names = ['localhost', '127.0.0.1', '::1', hostname()];
  if (!isEveryAddress(listen.host)) names.push(listen.host);
  if (config.workerUrl !== undefined) {
    names.push(new URL(config.workerUrl).hostname.replaceAll(/[[\]]/g, ''));
  }
  return [...new Set(names)];
}

function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
