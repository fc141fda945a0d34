import { Resolver } from 'node:dns';
import { isIP } from 'node:net';

const REREAD_MS = 10_000;
const DNS_PORT = 53;

export interface UpstreamServer {
  readonly address: string;
  readonly port: number;
}

/** The DNS servers of this machine. Rereads them every 10 s to follow network changes. */
export function systemUpstreams(): () => readonly string[] {
  let servers: readonly string[] = [];
  let readAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (performance.now() - readAt > REREAD_MS) {
      servers = new Resolver().getServers();
      readAt = performance.now();
    }
    return servers;
  };
}

/** Reads `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or `[2001:db8::1]:5353`. Undefined for other text. */
export function parseServer(text: string): UpstreamServer | undefined {
  if (isIP(text) !== 0) return { address: text, port: DNS_PORT };
  const match = /^\[?([^\]]+?)\]?(?::(\d+))?$/.exec(text);
  const address = match?.[1] ?? '';
  const port = Number(match?.[2] ?? DNS_PORT);
  const usable = isIP(address) !== 0 && port > 0 && port <= 65_535;
  return usable ? { address, port } : undefined;
}
