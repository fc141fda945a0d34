import { once } from 'node:events';
import {
  INTERNAL_PREFIX,
  isViewUpdate,
  readViewUpdate,
  SESSION_PROTOCOL,
  type ViewUpdate,
} from '@svc/contract';
import { mintHopToken } from '@svc/service-kit';
import { vi } from 'vitest';
import WebSocket from 'ws';
import type { Harness } from './harness.ts';

export interface ReceivedFrame {
  readonly type: string;
  readonly seq?: number;
  readonly ts: string;
  readonly [field: string]: unknown;
}

export interface SocketOptions {
  readonly afterSeq?: number;
  /** Replaces the valid hop token; null sends none. */
  readonly token?: string | null;
  /** The claim of its token. Default false. */
  readonly controlsDesktop?: boolean;
  /** Whether the client stops reading at the first frame. */
  readonly pauses?: boolean;
}

/** A client of a session at the worker, in the role of a runtime host. */
export class SessionSocket {
  readonly ws: WebSocket;
  readonly frames: ReceivedFrame[] = [];
  /** Each with the number of frames before it. */
  readonly pictures: { readonly data: Buffer; readonly after: number }[] = [];
  /** Of a live view. */
  readonly updates: ViewUpdate[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;

  private constructor(ws: WebSocket) {
    this.ws = ws;
    ws.on('message', (data: Buffer, isBinary) => {
      const update = isBinary && isViewUpdate(data) ? readViewUpdate(data) : undefined;
      if (update !== undefined) this.updates.push(update);
      else if (isBinary) this.pictures.push({ data, after: this.frames.length });
      else this.frames.push(JSON.parse(data.toString('utf8')));
    });
    ws.on('error', () => undefined);
    this.closed = once(ws, 'close').then(([code, reason]) => ({
      code: Number(code),
      reason: String(reason),
    }));
  }

  /** Attaches, and waits for `ready`. */
  static async open(
    harness: Harness,
    session: string,
    options: SocketOptions = {},
  ): Promise<SessionSocket> {
    const ws = await dial(harness, session, options);
    if (options.pauses === true) ws.once('message', () => ws.pause());
    const socket = new SessionSocket(ws);
    await socket.next((frame) => frame.type === 'ready');
    return socket;
  }

  /** The status and error code with which the worker refuses an upgrade. */
  static async refusal(
    harness: Harness,
    session: string,
    options: SocketOptions & { readonly path?: string } = {},
  ): Promise<{ status: number; code: string }> {
    const ws = await dial(harness, session, options);
    ws.on('error', () => undefined);
    const [, response] = await once(ws, 'unexpected-response');
    let text = '';
    for await (const chunk of response) text += chunk;
    ws.terminate();
    return { status: response.statusCode, code: JSON.parse(text).code };
  }

  send(frame: unknown): void {
    this.ws.send(JSON.stringify(frame));
  }

  /** Waits for the first frame, received already or later, that `is` accepts. */
  next(is: (frame: ReceivedFrame) => boolean): Promise<ReceivedFrame> {
    const find = () => {
      const found = this.frames.find(is);
      if (found === undefined) throw new Error(`not among ${this.types.slice(-20).join(', ')}`);
      return found;
    };
    return vi.waitFor(find, { timeout: 20_000, interval: 10 });
  }

  get types(): string[] {
    return this.frames.map(({ type }) => type);
  }

  /** The numbers of the received frames, in their order of arrival. */
  get seqs(): number[] {
    return this.frames.map(({ seq }) => seq).filter((seq) => seq !== undefined);
  }

  async close(): Promise<void> {
    this.ws.close();
    await this.closed;
  }
}

async function dial(
  harness: Harness,
  session: string,
  { afterSeq, token, path, controlsDesktop }: SocketOptions & { readonly path?: string },
): Promise<WebSocket> {
  const claims = { controlsDesktop: controlsDesktop === true };
  const hop = token === undefined ? await hopToken(harness, session, 'worker-1', claims) : token;
  const url = new URL(path ?? `${INTERNAL_PREFIX}/sessions/${session}/ws`, harness.worker.url);
  url.protocol = 'wss:';
  if (afterSeq !== undefined) url.searchParams.set('after_seq', String(afterSeq));
  return new WebSocket(url, SESSION_PROTOCOL, {
    rejectUnauthorized: false,
    headers: hop === null ? {} : { authorization: `Bearer ${hop}` },
  });
}

/** A token like those that a control plane mints for the connection to a worker. */
export function hopToken(
  { key }: Harness,
  session: string,
  workerId = 'worker-1',
  { controlsDesktop = false } = {},
): Promise<string> {
  const identity = {
    user_id: 'usr_a',
    app_id: 'app',
    set_id: 'default',
    chat_session_id: session,
    cua_enabled: controlsDesktop,
  };
  return mintHopToken(key, identity, workerId);
}
