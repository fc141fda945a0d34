import type { ProcessContext, ProcessExit, ProcessRequest } from '../processes/index.ts';
import type { Dialogue, TurnEnd } from '../vendor-cli/dialogue.ts';
import { AgentFailure } from '../vendor-cli/failure.ts';
import { at, isObject, stringAt } from '../vendor-cli/json.ts';
import type { TurnFrames } from '../vendor-cli/turn-frames.ts';
import { AppServer, type AppServerHandlers } from './app-server.ts';
import { framesOfEnd, framesOfStart } from './items.ts';
import type { ThreadMemory } from './thread-memory.ts';
import { endOf } from './turn-end.ts';

const CLIENT = { name: 'svc', title: null, version: '1' };

/** Settings of a thread. */
interface ThreadStart {
  readonly cwd: string;
  readonly model: string;
}

interface Turn {
  readonly frames: TurnFrames;
  readonly end: (end: TurnEnd) => void;
  /** Codex's process ids of the running commands, by item id. */
  readonly commands: Map<string, string>;
  id?: string | undefined;
  /** Whether it was interrupted, possibly before codex reported its id. */
  interrupted?: boolean;
}

/** A process of codex as an app server. https://developers.openai.com/codex/app-server */
export class CodexDialogue implements Dialogue {
  readonly ready: Promise<void>;
  readonly #server: AppServer;
  readonly #memory: ThreadMemory;
  #turn: Turn | undefined;

  private constructor(server: AppServer, memory: ThreadMemory, start: ThreadStart) {
    this.#server = server;
    this.#memory = memory;
    this.ready = this.#begin(start);
  }

  /** Continues the thread in `memory` with this model, or begins one and stores its id there. */
  static async start(
    context: ProcessContext,
    request: ProcessRequest,
    model: string,
    memory: ThreadMemory,
    handlers: Omit<AppServerHandlers, 'onNotification'>,
  ): Promise<CodexDialogue> {
    let dialogue: CodexDialogue | undefined;
    const server = await AppServer.start(context, request, {
      ...handlers,
      onNotification: (method, params) => dialogue?.receive(method, params),
    });
    const cwd = context.workingDirectory;
    dialogue = new CodexDialogue(server, memory, { cwd, model });
    return dialogue;
  }

  get ended(): Promise<ProcessExit> {
    return this.#server.ended;
  }

  get silentMs(): number {
    return this.#server.silentMs;
  }

  async runTurn(prompt: string, frames: TurnFrames): Promise<TurnEnd> {
    const threadId = this.#memory.thread;
    const input = [{ type: 'text', text: prompt, text_elements: [] }];
    const { promise: ended, resolve: end } = Promise.withResolvers<TurnEnd>();
    const turn: Turn = { frames, end, commands: new Map() };
    this.#turn = turn;
    const started = await this.#server.request('turn/start', { threadId, input });
    this.#setId(turn, stringAt(started, 'turn', 'id'));
    return ended;
  }

  interrupt(): void {
    if (this.#turn === undefined) return;
    this.#turn.interrupted = true;
    this.#sendInterrupt(this.#turn);
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }

  async #begin(start: ThreadStart): Promise<void> {
    // The request that terminates a command is experimental.
    const capabilities = { experimentalApi: true, requestAttestation: false };
    await this.#server.request('initialize', { clientInfo: CLIENT, capabilities });
    this.#server.notify('initialized');
    const resumed = await this.#resume(start);
    const started = resumed ?? (await this.#server.request('thread/start', { ...start }));
    const thread = stringAt(started, 'thread', 'id');
    if (thread === undefined)
      throw new AgentFailure('agent_failed', 'codex did not begin a thread.');
    this.#memory.thread = thread;
  }

  /** Undefined when there is no thread to resume. Names the model, since codex would keep that of the thread. */
  async #resume(start: ThreadStart): Promise<unknown> {
    const threadId = this.#memory.thread;
    if (threadId === undefined) return undefined;
    try {
      return await this.#server.request('thread/resume', {
        ...start,
        threadId,
        excludeTurns: true,
      });
    } catch (error) {
      this.#memory.lost(error);
      return undefined;
    }
  }

  /** Handles one notification. Skips those of sub-agents' threads, which belong to the call that started them. */
  receive(method: string, params: unknown): void {
    const turn = this.#turn;
    if (turn === undefined || stringAt(params, 'threadId') !== this.#memory.thread) return;
    const item = at(params, 'item');
    if (method === 'turn/started') this.#setId(turn, stringAt(params, 'turn', 'id'));
    else if (method === 'item/agentMessage/delta') {
      turn.frames.textDelta(stringAt(params, 'delta') ?? '');
    } else if (method === 'item/started' && isObject(item)) {
      const process = stringAt(item, 'processId');
      if (process !== undefined) turn.commands.set(stringAt(item, 'id') ?? '', process);
      framesOfStart(item, turn.frames);
    } else if (method === 'item/completed' && isObject(item)) {
      turn.commands.delete(stringAt(item, 'id') ?? '');
      framesOfEnd(item, turn.frames);
    } else if (method === 'turn/completed') {
      this.#turn = undefined;
      void this.#endTurn(turn, endOf(at(params, 'turn'), turn.frames.lastMessage));
    }
  }

  #setId(turn: Turn, id: string | undefined): void {
    if (turn.id !== undefined) return;
    turn.id = id;
    this.#sendInterrupt(turn);
  }

  #sendInterrupt({ id: turnId, interrupted }: Turn): void {
    if (turnId === undefined || interrupted !== true) return;
    const params = { threadId: this.#memory.thread, turnId };
    // The turn may already have ended.
    this.#server.request('turn/interrupt', params).catch(() => undefined);
  }

  /** Terminates the commands of an interrupted turn, which codex would leave running. */
  async #endTurn(turn: Turn, end: TurnEnd): Promise<void> {
    if (end.status === 'interrupted') {
      const threadId = this.#memory.thread;
      const terminations = [...turn.commands.values()].map((processId) =>
        this.#server.request('thread/backgroundTerminals/terminate', { threadId, processId }),
      );
      // Fails for a command that has already ended.
      await Promise.allSettled(terminations);
    }
    turn.end(end);
  }
}
