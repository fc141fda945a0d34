import type { ProcessContext, ProcessExit, ProcessRequest } from '../processes/index.ts';
import { AgentFailure } from '../vendor-cli/failure.ts';
import { isObject, type JsonObject, stringAt } from '../vendor-cli/json.ts';
import { JsonLinesProcess } from '../vendor-cli/json-lines-process.ts';

/** Bound of unanswered requests. A session has one or two. */
const MAX_REQUESTS = 64;
const METHOD_NOT_FOUND = -32_601;

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

export interface AppServerHandlers {
  onNotification(method: string, params: unknown): void;
  readonly log: (text: string) => void;
  /** Settles when more frames may be sent. */
  readonly drained: () => Promise<void>;
}

/** A client for `codex app-server`: JSON-RPC on its standard input and output. */
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
        server?.receive(message, handlers);
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
   * Sends a request. Rejects with an AgentFailure when the response is an error; stays pending if the process ends.
   */
  request(method: string, params: JsonObject): Promise<unknown> {
    if (this.#pending.size >= MAX_REQUESTS) {
      return Promise.reject(new AgentFailure('agent_failed', 'codex no longer answers.'));
    }
    this.#requests += 1;
    const id = this.#requests;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#process.send({ id, method, params });
    });
  }

  /** Handles one message of the process. */
  receive(message: JsonObject, handlers: AppServerHandlers): void {
    const method = stringAt(message, 'method');
    if (method === undefined) this.#handleResponse(message);
    else if (message.id === undefined) handlers.onNotification(method, message.params);
    else this.#refuse(message.id);
  }

  #handleResponse(message: JsonObject): void {
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

  /** Refuses a request meant for an interactive user; unanswered, codex would wait for ever. */
  #refuse(id: unknown): void {
    const error = { code: METHOD_NOT_FOUND, message: 'No user is present to answer.' };
    this.#process.send({ id, error });
  }
}
