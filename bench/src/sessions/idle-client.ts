import { once } from 'node:events';
import type { SessionAccess } from '@svc/contract';
import type { RuntimeHost } from '@svc/service-driver';
import WebSocket from 'ws';

/** An attached client that only answers pings, and counts them. */
export interface IdleClient {
  readonly pings: number;
  readonly closed: boolean;
  end(): void;
}

/** Attaches an idle client to a session through a runtime host. */
export async function attachIdle(
  session: SessionAccess,
  host: RuntimeHost,
  ca: string,
): Promise<IdleClient> {
  const socket = new WebSocket(host.urlOf(session), {
    ca,
    headers: { authorization: `Bearer ${session.jwt}` },
  });
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
