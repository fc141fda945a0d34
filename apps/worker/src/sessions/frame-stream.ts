import type { Duplex } from 'node:stream';
import { type Agent, FRAME_ERRORS, type FrameErrorCode } from '@svc/contract';
import { sleep } from '@svc/service-kit/concurrency';
import type { WebSocket } from 'ws';
import type { ForwardedFrame } from '../agents/link/outbox.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { AttachedClients } from './clients/attached-clients.ts';
import { SessionClient } from './clients/session-client.ts';
import type { NewFrame } from './journal/format.ts';
import type { Journal } from './journal/journal.ts';
import type { AgentServices } from './services.ts';

const DISK_RETRY_MS = 1_000;

export interface FrameStreamOptions {
  readonly agent: Agent;
  readonly sandbox: Sandbox;
  readonly journal: Journal;
  readonly services: Pick<AgentServices, 'clock' | 'times' | 'metrics' | 'onFault'>;
  /** Aborts when the session is over here. */
  readonly closed: AbortSignal;
  /** Passes a client's frame on to the agent; false when too many wait. */
  readonly forward: (frame: ForwardedFrame) => Promise<boolean>;
  /** Called when the end of a task has been shown. */
  readonly onTaskShown: () => void;
}

/** The frames of a session on their way: into the journal, then to everyone attached. A running task is activity. */
export class FrameStream {
  readonly #options: FrameStreamOptions;
  readonly #audience = new AttachedClients();
  #endTask: (() => void) | undefined;

  constructor(options: FrameStreamOptions) {
    const { journal, sandbox, closed } = options;
    this.#options = options;
    journal.onKept = (frames) => this.#audience.show(frames);
    if (journal.taskRuns) this.#endTask = sandbox.activity.begin();
    closed.addEventListener('abort', () => this.#taskEnded(), { once: true });
  }

  /** How many clients are attached. */
  get clients(): number {
    return this.#audience.size;
  }

  /** Takes a client in: it gets `ready`, then everything after `afterSeq`, or only what comes from now on. */
  attach(
    client: { readonly ws: WebSocket; readonly socket: Duplex; readonly afterSeq?: number },
    ready: Readonly<Record<string, unknown>>,
  ): void {
    const { sandbox, journal, services, forward } = this.#options;
    const { ws } = client;
    const attached = new SessionClient({
      ...client,
      journal,
      clock: services.clock,
      slowConsumerMs: services.times.slowConsumerMs,
      forward,
      onFault: services.onFault,
    });
    this.#audience.add(attached);
    const disconnect = sandbox.connections.attach(attached);
    ws.once('close', () => {
      this.#audience.delete(attached);
      disconnect();
    });
    attached.start({ ...ready, last_seq: journal.lastSeq });
  }

  /** Keeps frames, and shows them then. Rejects, and none is kept, when they cannot be written. */
  async keep(frames: readonly NewFrame[]): Promise<void> {
    const { agent, journal, sandbox, services, onTaskShown } = this.#options;
    await journal.append(frames);
    for (const { frame } of frames) {
      services.metrics.frameKept(agent, frame);
      if (frame.type === 'task_started') this.#endTask ??= sandbox.activity.begin();
      if (frame.type !== 'task_completed') continue;
      this.#taskEnded();
      onTaskShown();
    }
  }

  /** Like {@link keep}, but waits a full disk out: the guest is not read meanwhile, so nothing is lost. */
  async keepAtLast(frames: readonly NewFrame[]): Promise<void> {
    const { closed, services } = this.#options;
    if (frames.length === 0) return;
    for (let reported = false; ; reported = true) {
      closed.throwIfAborted();
      try {
        await this.keep(frames);
        return;
      } catch (error) {
        if (!reported) services.onFault(error, 'keep the frames of a session; trying on');
      }
      await sleep(DISK_RETRY_MS, closed);
    }
  }

  /** Says what went wrong, as a frame of the session. */
  async error(code: FrameErrorCode): Promise<void> {
    const frame = { type: 'error', code, message: FRAME_ERRORS[code] } as const;
    await this.keepAtLast([{ n: 0, frame }]);
  }

  /** Settles when every client has read most of what it was sent, or was disconnected for not reading. */
  async caughtUp(): Promise<void> {
    const { services, closed } = this.#options;
    await this.#audience.caughtUp(services.times.slowConsumerMs, closed);
  }

  #taskEnded(): void {
    this.#endTask?.();
    this.#endTask = undefined;
  }
}
