import { type Agent, FRAME_ERRORS, type FrameErrorCode } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { settledWithin, sleep, untilAborted } from '@svc/service-kit/concurrency';
import type { AgentLink, AgentLinkHandler } from '../../agents/link/agent-link.ts';
import type { NumberedMessage } from '../../agents/link/guest-messages.ts';
import type { ForwardedFrame } from '../../agents/link/outbox.ts';
import type { AgentTimeouts } from '../../agents/timeouts.ts';
import type { LlmUsage } from '../../gateway/index.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { AttachedClients } from '../clients/attached-clients.ts';
import type { FrameReceiver } from '../clients/session-client.ts';
import type { NewFrame } from '../journal/format.ts';
import type { Journal } from '../journal/journal.ts';
import type { SessionMetrics } from '../metrics.ts';
import { OutputBudget } from './output-budget.ts';
import type { TurnCommits } from './turn-commits.ts';

const DISK_RETRY_MS = 1_000;

export interface TurnPipelineOptions {
  readonly agent: Agent;
  readonly wireVersion: 1 | 2;
  readonly vm: Pick<Microvm, 'exited' | 'paused' | 'resume'>;
  readonly sandbox: Pick<Sandbox, 'activity' | 'end'>;
  readonly link: Pick<AgentLink, 'forward' | 'save'>;
  readonly journal: Journal;
  readonly clients: Pick<AttachedClients, 'show' | 'caughtUp'>;
  readonly commits: Pick<
    TurnCommits,
    'commitTurn' | 'commitInBackground' | 'commitRest' | 'isStale'
  >;
  readonly timeouts: Pick<AgentTimeouts, 'saveMs' | 'slowConsumerMs'>;
  readonly metrics: Pick<SessionMetrics, 'frameStored'>;
  readonly onFault: (error: unknown, what: string) => void;
  /** Aborts when the session closes. */
  readonly closed: AbortSignal;
}

/**
 * The path of a session's frames. Invariants: a frame is numbered and written to the journal before a client sees
 * it; the frames behind a turn, `task_completed` first, are stored only after the turn's commit has succeeded or been
 * reported as failed; the guest is read no further until clients have caught up. A running task is activity.
 */
export class TurnPipeline implements AgentLinkHandler, FrameReceiver {
  readonly #options: TurnPipelineOptions;
  readonly #budget = new OutputBudget();
  #endTask: (() => void) | undefined;
  #onStateHandled: () => void = () => undefined;

  constructor(options: TurnPipelineOptions) {
    const { journal, sandbox, closed } = options;
    this.#options = options;
    if (journal.taskRunning) this.#endTask = sandbox.activity.begin();
    closed.addEventListener('abort', () => this.#noteTaskEnd(), { once: true });
  }

  /** Forwards a client's frame to the agent. False when too many frames wait for it. */
  async forward(frame: ForwardedFrame): Promise<boolean> {
    const { link, closed } = this.#options;
    if (closed.aborted) return false;
    if (frame.type === 'task' || frame.type === 'exec') this.#budget.refill();
    return link.forward(frame);
  }

  /** Stores frames, then shows them. Rejects, having stored none, when they cannot be written. */
  async store(frames: readonly NewFrame[]): Promise<void> {
    const { agent, journal, clients, sandbox, commits, metrics } = this.#options;
    await journal.append(frames, (stored) => clients.show(stored));
    for (const { frame } of frames) {
      metrics.frameStored(agent, frame);
      if (frame.type === 'task_started') this.#endTask ??= sandbox.activity.begin();
      if (frame.type !== 'task_completed') continue;
      this.#noteTaskEnd();
      commits.commitInBackground();
    }
  }

  /** Handles messages of the guest in order, see {@link AgentLinkHandler}. */
  async receive(
    messages: readonly NumberedMessage[],
    acknowledge: (n: number) => void,
  ): Promise<void> {
    const { clients, wireVersion, timeouts, closed } = this.#options;
    let batch: NewFrame[] = [];
    const flush = async () => {
      const last = batch.at(-1);
      await this.storeEventually(batch);
      batch = [];
      if (last !== undefined) acknowledge(last.n);
    };
    for (const message of messages) {
      if (message.type === 'frame') {
        const frame = this.#budget.admit(message, wireVersion);
        if (frame !== undefined) batch.push({ n: message.n, frame });
      } else if (message.type === 'state') {
        await flush();
        await this.#commitTurn(message);
        acknowledge(message.n);
      }
    }
    await flush();
    acknowledge(messages.at(-1)?.n ?? 0);
    await clients.caughtUp(timeouts.slowConsumerMs, closed);
  }

  /** Reports an agent that became unreachable, and ends its sandbox. */
  lost(): void {
    const { sandbox } = this.#options;
    this.#reportError('agent_failed')
      .then(() => {
        sandbox
          .end('agent_exited')
          .catch((error) => this.#fault(error, 'end the sandbox of a session'));
      })
      .catch((error) => this.#fault(error, 'end a session whose agent is lost'));
  }

  /** Stores and shows the tokens that a request to the model used. */
  noteUsage(usage: LlmUsage): void {
    if (this.#options.closed.aborted) return;
    this.store([{ n: 0, frame: { type: 'usage', ...usage } }]).catch((error) =>
      this.#fault(error, 'store the usage of a session'),
    );
  }

  /** At the end of the sandbox: has the guest save its state, and commits everything. Never rejects; ends within `ms`. */
  async finish(ms: number): Promise<void> {
    const { vm, commits, timeouts } = this.#options;
    if (commits.isStale) return;
    const end = performance.now() + ms;
    const saved = Promise.race([vm.exited, this.#saveState()]);
    await settledWithin(saved, Math.min(timeouts.saveMs, ms));
    await commits.commitRest(Math.max(0, end - performance.now()));
  }

  /**
   * Like {@link store}, but retries for as long as the disk is full. The guest is not read until then, so no frame is
   * lost. Rejects when the session closes.
   */
  async storeEventually(frames: readonly NewFrame[]): Promise<void> {
    const { closed, onFault } = this.#options;
    if (frames.length === 0) return;
    for (let reported = false; ; reported = true) {
      closed.throwIfAborted();
      try {
        await this.store(frames);
        return;
      } catch (error) {
        if (!reported) onFault(error, 'store the frames of a session; retrying');
      }
      await sleep(DISK_RETRY_MS, closed);
    }
  }

  /** Settles once the frames behind the turn may be stored: never for a stale session. */
  async #commitTurn(state: Extract<NumberedMessage, { type: 'state' }>): Promise<void> {
    const { commits, closed } = this.#options;
    const outcome = await commits.commitTurn(state);
    if (outcome === 'stale') await untilAborted(new Promise<never>(() => undefined), closed);
    if (outcome === 'failed') await this.#reportError('state_not_saved');
    this.#onStateHandled();
  }

  /** Asks the guest for its state; settles when the answer has been handled. */
  async #saveState(): Promise<void> {
    const { vm, link, closed } = this.#options;
    // Only a running guest can answer, and an ending sandbox need not stay paused.
    if (vm.paused) await vm.resume(closed);
    const handled = Promise.withResolvers<void>();
    this.#onStateHandled = handled.resolve;
    link.save();
    await handled.promise;
  }

  async #reportError(code: FrameErrorCode): Promise<void> {
    const frame = { type: 'error', code, message: FRAME_ERRORS[code] } as const;
    await this.storeEventually([{ n: 0, frame }]);
  }

  #noteTaskEnd(): void {
    this.#endTask?.();
    this.#endTask = undefined;
  }

  #fault(error: unknown, what: string): void {
    if (!this.#options.closed.aborted) this.#options.onFault(error, what);
  }
}
