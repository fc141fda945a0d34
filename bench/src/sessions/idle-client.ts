import { once } from 'node:events';
import type { SessionAccess } from '@svc/contract';
import WebSocket from 'ws';
import type { BenchRuntimeHost } from './runtime-host.ts';

/** An attached client that only answers pings, which it counts. */
export interface IdleClient {
  readonly pings: number;
  readonly closed: boolean;
  end(): void;
}

/** Attaches one at a runtime host. */
export async function attachIdle(
  session: SessionAccess,
  host: BenchRuntimeHost,
  ca: string,
): Promise<IdleClient> {
  const url = new URL(session.connect_url);
  url.port = String(host.port);
  const socket = new WebSocket(url, { ca, headers: { authorization: `Bearer ${session.jwt}` } });
  let pings = 0;
  socket.on('ping', () => {
    pings += 1;
  });
  await once(socket, 'open');
  return {
    get pings() {
      return pings;
    },
    get closed() {
      return socket.readyState !== WebSocket.OPEN;
    },
    end: () => socket.terminate(),
  };
}
