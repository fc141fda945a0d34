import {
  type ForwardedFrame,
  FRAME_ERRORS,
  type FrameErrorCode,
  isServiceError,
  type PlacedAgent,
} from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import {
  openDeadline,
  SingleFlight,
  settledWithin,
  sleep,
  untilAborted,
} from '@svc/service-kit/concurrency';
import type { TraceOrigin } from '@svc/service-kit/tracing';
import type { AgentLink, AgentLinkHandler } from '../../agents/link/agent-link.ts';
import type { NumberedMessage } from '../../agents/link/guest-messages.ts';
import type { AgentTimeouts } from '../../agents/timeouts.ts';
import type { LlmUsage } from '../../gateway/index.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { AttachedClients } from '../clients/attached-clients.ts';
import type { FrameReceiver } from '../clients/session-client.ts';
import type { NewFrame } from '../journal/format.ts';
import type { Journal } from '../journal/journal.ts';
import type { SessionMetrics } from '../metrics.ts';
import { OutputBudget } from './output-budget.ts';
import type { TaskTrace } from './task-trace.ts';
import type { TurnStore } from './turn-store.ts';

const DISK_RETRY_MS = 1_000;
/** For a paused sandbox to resume, after a pause in progress, which may first save a workspace. */
const RESUME_MS = 60_000;

/** The ends of an agent. */
export interface AgentEvents {
  /** Called when a one-shot agent has exited, after its last frame was shown. Must not reject. */
  exited(exitCode: number): Promise<void>;
  /** Called when the agent has become unreachable. */
  lost(): Promise<void>;
}

export interface TurnPipelineOptions {
  readonly placed: Pick<PlacedAgent, 'kind' | 'mode' | 'interactive' | 'wire_version'>;
  readonly events: AgentEvents;
  readonly vm: Pick<Microvm, 'exited' | 'paused' | 'resume'>;
  readonly sandbox: Pick<Sandbox, 'activity' | 'power' | 'usage'>;
  readonly link: Pick<AgentLink, 'forward' | 'save'>;
  readonly journal: Journal;
  readonly clients: Pick<AttachedClients, 'show' | 'showPicture' | 'caughtUp'>;
  readonly turns: Pick<
    TurnStore,
    'commitTurn' | 'commitInBackground' | 'commitRest' | 'takesState'
  >;
  readonly timeouts: Pick<AgentTimeouts, 'saveMs' | 'slowConsumerMs'>;
  readonly metrics: Pick<SessionMetrics, 'frameStored'>;
  readonly trace: TaskTrace;
  /** Whether the tenant's rate allows a client's `tool_call` now. */
  readonly mayUseDesktop: (tool: string) => boolean;
  readonly onFault: (error: unknown, what: string) => void;
  /** Aborts when the session closes. */
  readonly closed: AbortSignal;
}

/**
 * The path of an agent's frames. Invariants: a frame is numbered and written to the journal before a client sees
 * it; the frames behind a turn, `task_completed` first, are stored only after the turn's commit has succeeded or been
 * reported as failed; the guest is read no further until clients have caught up. A running task is activity.
 */
export class TurnPipeline implements AgentLinkHandler, FrameReceiver {
  readonly #options: TurnPipelineOptions;
  readonly #budget = new OutputBudget();
  /** One for all frames, so that a resume that fails fails once. */
  readonly #resuming = new SingleFlight<boolean>();
  #endTask: (() => void) | undefined;
  #onStateHandled: () => void = () => undefined;

  constructor(options: TurnPipelineOptions) {
    const { journal, sandbox, trace, closed } = options;
    this.#options = options;
    if (journal.taskRunning) this.#endTask = sandbox.activity.begin();
    const close = () => {
      trace.noteEnd('cut_short');
      this.#noteTaskEnd();
    };
    closed.addEventListener('abort', close, { once: true });
  }

  /**
   * Forwards a client's frame to the agent, and resumes a paused sandbox first. Returns why that is not possible; undefined
   * when it is.
   */
  async forward(
    frame: ForwardedFrame,
    origin?: TraceOrigin,
  ): Promise<Extract<FrameErrorCode, 'busy' | 'frame_rate' | 'task_not_accepted'> | undefined> {
    const { link, closed, placed, trace, mayUseDesktop } = this.#options;
    if (closed.aborted) return 'busy';
    const takesTasks = placed.mode === 'session' || placed.interactive === true;
    if (frame.type === 'task' && !takesTasks) return 'task_not_accepted';
    if (frame.type === 'tool_call' && !mayUseDesktop(frame.name)) return 'frame_rate';
    if (frame.type !== 'interrupt') this.#budget.refill();
    if (frame.type === 'task') trace.noteAsked(origin);
    return (await link.forward(frame, this.ensureRunning())) ? undefined : 'busy';
  }

  /** Whether the sandbox is running; resumes a paused one first. Never rejects; bounded in time. */
  ensureRunning(): Promise<boolean> {
    const { sandbox, closed } = this.#options;
    return this.#resuming.run(async () => {
      using deadline = openDeadline(closed, RESUME_MS);
      try {
        await sandbox.power.ensureRunning(deadline.signal);
        return true;
      } catch (error) {
        // One that is held or about to end runs no more, which is no fault.
        if (!isServiceError(error)) this.#fault(error, 'resume a sandbox for a client');
        return false;
      }
    });
  }

  /** Stores frames, then shows them. Rejects, having stored none, when they cannot be written. */
  async store(frames: readonly NewFrame[]): Promise<void> {
    const { placed, journal, clients, sandbox, turns, metrics, trace } = this.#options;
    await journal.append(frames, (stored) => clients.show(stored));
    for (const { frame } of frames) {
      metrics.frameStored(placed.kind, frame);
      if (frame.type === 'tool_call') sandbox.usage.addToolCall();
      if (frame.type === 'task_started') {
        this.#endTask ??= sandbox.activity.begin();
        trace.noteBegin();
      }
      if (frame.type !== 'task_completed') continue;
      trace.noteEnd(frame.status);
      this.#noteTaskEnd();
      turns.commitInBackground();
    }
  }

  /** Handles messages of the guest in order, see {@link AgentLinkHandler}. */
  async receive(
    messages: readonly NumberedMessage[],
    acknowledge: (n: number) => void,
  ): Promise<void> {
    const { journal, clients, placed, events, timeouts, closed } = this.#options;
    let batch: NewFrame[] = [];
    const flush = async () => {
      const last = batch.at(-1);
      await this.storeEventually(batch);
      batch = [];
      if (last !== undefined) acknowledge(last.n);
    };
    for (const message of messages) {
      if (message.type === 'frame') {
        // The guest repeats a frame that it may not forget yet.
        if (message.n <= journal.lastN) continue;
        const frame = this.#budget.admit(message, placed.wire_version);
        if (frame !== undefined) batch.push({ n: message.n, frame });
        if (message.image === undefined || frame !== message.frame) continue;
        // Behind its frame, and ahead of the next.
        await flush();
        clients.showPicture(message.image);
      } else {
        await flush();
        if (message.type === 'state') await this.#commitTurn(message);
        else await events.exited(message.exitCode);
        acknowledge(message.n);
      }
    }
    await flush();
    acknowledge(messages.at(-1)?.n ?? 0);
    await clients.caughtUp(timeouts.slowConsumerMs, closed);
  }

  /** Reports an agent that became unreachable to its clients, then to its owner. */
  lost(): void {
    this.#reportError('agent_failed')
      .then(() => this.#options.events.lost())
      .catch((error) => this.#fault(error, 'handle the loss of an agent'));
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
    const { vm, turns, timeouts } = this.#options;
    if (!turns.takesState) return;
    const end = performance.now() + ms;
    const saved = Promise.race([vm.exited, this.#saveState()]);
    await settledWithin(saved, Math.min(timeouts.saveMs, ms));
    await turns.commitRest(Math.max(0, end - performance.now()));
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
    const { turns, trace, closed } = this.#options;
    const outcome = await trace.run(() => turns.commitTurn(state));
    if (outcome === 'stale') await untilAborted(new Promise<never>(() => undefined), closed);
    if (outcome === 'failed') await this.#reportError('state_not_saved');
    if (outcome === 'storage_full') await this.#reportError('session_storage_full');
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
