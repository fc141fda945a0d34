import { ChunksApi } from './chunks-api.ts';
import type { ControlPlaneTransport } from './control-plane-transport.ts';

/** One start of a session. */
export interface ChunksOwner {
  readonly sessionId: string;
  readonly generation: number;
}

/** The chunks of sessions. */
export class SessionChunksApi extends ChunksApi<ChunksOwner> {
  constructor(transport: Pick<ControlPlaneTransport, 'json' | 'done'>) {
    super(transport, ({ sessionId, generation }) => ({
      path: `/sessions/${encodeURIComponent(sessionId)}`,
      generation,
    }));
  }
}
