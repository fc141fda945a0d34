import type { ProcessContext, ProcessExit } from '../processes/index.ts';
import type { Dialogue, TurnEnd } from '../vendor-cli/dialogue.ts';
import { AgentFailure } from '../vendor-cli/failure.ts';
import { type JsonObject, stringAt } from '../vendor-cli/json.ts';
import { JsonLinesProcess } from '../vendor-cli/json-lines-process.ts';
import type { TurnFrames } from '../vendor-cli/turn-frames.ts';
import { framesOfMessage } from './messages.ts';
import { endOf } from './result.ts';

interface Turn {
  readonly frames: TurnFrames;
  readonly end: (end: TurnEnd) => void;
}

export interface DialogueRequest {
  readonly binary: string;
  readonly args: readonly string[];
  readonly log: (text: string) => void;
  /** Called with the session id of each turn: `/clear` begins another session. */
  readonly onSession: (session: string) => void;
  /** Settles when more frames may be sent. */
  readonly drained: () => Promise<void>;
}

/** A process of Claude Code in its streaming mode. https://code.claude.com/docs/en/headless */
export class ClaudeCodeDialogue implements Dialogue {
  readonly ready: Promise<void>;
  readonly #process: JsonLinesProcess;
  readonly #initialized = Promise.withResolvers<void>();
  readonly #onSession: (session: string) => void;
  #turn: Turn | undefined;
  #requests = 0;

  private constructor(process: JsonLinesProcess, onSession: (session: string) => void) {
    this.#process = process;
    this.#onSession = onSession;
    this.ready = this.#initialized.promise;
    this.#control('initialize');
  }

  /** Rejects when the program cannot be started. */
  static async start(
    context: ProcessContext,
    request: DialogueRequest,
  ): Promise<ClaudeCodeDialogue> {
    const { binary: command, args, log, onSession, drained } = request;
    let dialogue: ClaudeCodeDialogue | undefined;
    const process = await JsonLinesProcess.start(
      context,
      { command, args },
      {
        onMessage: (message) => {
          dialogue?.receive(message);
          return drained();
        },
        onLog: log,
      },
    );
    dialogue = new ClaudeCodeDialogue(process, onSession);
    return dialogue;
  }

  get ended(): Promise<ProcessExit> {
    return this.#process.ended;
  }

  get silentMs(): number {
    return this.#process.silentMs;
  }

  runTurn(prompt: string, frames: TurnFrames): Promise<TurnEnd> {
    const content = [{ type: 'text', text: prompt }];
    return new Promise((end) => {
      this.#turn = { frames, end };
      const message = { role: 'user', content };
      this.#process.send({ type: 'user', message, parent_tool_use_id: null });
    });
  }

  interrupt(): void {
    this.#control('interrupt');
  }

  stop(): Promise<void> {
    return this.#process.stop();
  }

  #control(subtype: 'initialize' | 'interrupt'): void {
    this.#requests += 1;
    const id = `${subtype}-${this.#requests}`;
    this.#process.send({ type: 'control_request', request_id: id, request: { subtype } });
  }

  /** Handles one message of the process. */
  receive(message: JsonObject): void {
    const session = stringAt(message, 'session_id');
    if (message.subtype === 'init' && session !== undefined) this.#onSession(session);
    if (message.type === 'control_response') this.#handleResponse(message);
    else if (message.type === 'control_request') this.#refuse(message);
    else if (message.type === 'result') this.#endTurn(endOf(message));
    else if (this.#turn !== undefined) framesOfMessage(message, this.#turn.frames);
  }

  #handleResponse(message: JsonObject): void {
    if (!stringAt(message, 'response', 'request_id')?.startsWith('initialize')) return;
    if (stringAt(message, 'response', 'subtype') === 'success') this.#initialized.resolve();
    else {
      const detail = stringAt(message, 'response', 'error') ?? 'It did not start.';
      this.#initialized.reject(new AgentFailure('agent_failed', detail));
    }
  }

  /** Refuses a request meant for an interactive user; unanswered, the CLI would wait for ever. */
  #refuse(message: JsonObject): void {
    const error = 'No user is present to answer.';
    const response = { subtype: 'error', request_id: message.request_id, error };
    this.#process.send({ type: 'control_response', response });
  }

  #endTurn(end: TurnEnd): void {
    this.#turn?.end(end);
    this.#turn = undefined;
  }
}
