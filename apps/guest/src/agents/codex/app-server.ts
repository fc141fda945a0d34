import type { ProcessContext, ProcessExit, ProcessRequest } from '../processes/index.ts';
import { AgentFailure } from '../vendor-cli/failure.ts';
import { isObject, type JsonObject, stringAt } from '../vendor-cli/json.ts';
import { JsonLinesProcess } from '../vendor-cli/json-lines-process.ts';

/** Requests under way at once; a session has one or two. */
const MAX_REQUESTS = 64;
const METHOD_NOT_FOUND = -32_601;

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

export interface AppServerHandlers {
  onNotification(method: string, params: unknown): void;
  readonly log: (text: string) => void;
  /** Settles when more frames may be made. */
  readonly drained: () => Promise<void>;
}

/** The JSON-RPC of `codex app-server` on its standard input and output. */
export class AppServer {
  readonly #process: JsonLinesProcess;
  readonly #pending = new Map<number, Pending>();
  #requests = 0;

  private constructor(process: JsonLinesProcess) {
    this.#process = process;
  }

  /** Rejects when the program cannot be started. */
  static async start(
    context: ProcessContext,
    request: ProcessRequest,
    handlers: AppServerHandlers,
  ): Promise<AppServer> {
    let server: AppServer | undefined;
    const process = await JsonLinesProcess.start(context, request, {
      onMessage: (message) => {
        server?.hear(message, handlers);
        return handlers.drained();
      },
      onLog: handlers.log,
    });
    server = new AppServer(process);
    return server;
  }

  get ended(): Promise<ProcessExit> {
    return this.#process.ended;
  }

  get silentMs(): number {
    return this.#process.silentMs;
  }

  stop(): Promise<void> {
    return this.#process.stop();
  }

  notify(method: string): void {
    this.#process.send({ method });
  }

  /**
   * Asks; the answer is pending once the process has ended.
   * Rejects with an AgentFailure when it is an error.
   */
  request(method: string, params: JsonObject): Promise<unknown> {
    if (this.#pending.size >= MAX_REQUESTS) {
      return Promise.reject(new AgentFailure('agent_failed', 'codex answers nothing any more.'));
    }
    this.#requests += 1;
    const id = this.#requests;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#process.send({ id, method, params });
    });
  }

  /** Takes what the process says. */
  hear(message: JsonObject, handlers: AppServerHandlers): void {
    const method = stringAt(message, 'method');
    if (method === undefined) this.#hearResponse(message);
    else if (message.id === undefined) handlers.onNotification(method, message.params);
    else this.#refuse(message.id);
  }

  #hearResponse(message: JsonObject): void {
    if (typeof message.id !== 'number') return;
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (isObject(message.error)) {
      const detail = stringAt(message.error, 'message') ?? 'codex refused a request.';
      pending?.reject(new AgentFailure('agent_failed', detail));
    } else {
      pending?.resolve(message.result);
    }
  }

  /** It asks for what only a person in front of it could give; unanswered it would wait for ever. */
  #refuse(id: unknown): void {
    const error = { code: METHOD_NOT_FOUND, message: 'Nobody is there to answer.' };
    this.#process.send({ id, error });
  }
}
