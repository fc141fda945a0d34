import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AgentProcess,
  type ProcessContext,
  type ProcessExit,
  type ProcessRequest,
  startProcess,
} from '../processes/index.ts';
import { isObject, type JsonObject } from './json.ts';

/** A longer line of the CLI is left out: a picture that a tool has read stays below. */
const LINE_CHARS = 16 * 1024 * 1024;
/** How long a process that was asked to end has for each step: end of its input, SIGTERM. */
const STOP_MS = 2_000;
/** What a process leaves behind may hold its output open: how long it is read on. */
const REST_MS = 2_000;

export interface JsonLinesHandlers {
  /** One line of the process. The next is read when it settles. */
  onMessage(message: JsonObject): void | Promise<void>;
  /** What the process writes to stderr, and what of its output cannot be read. */
  onLog(text: string): void;
}

/** A process that is spoken to in JSON objects, one a line, in both directions. */
export class JsonLinesProcess {
  /** Settles (never rejects) when the process has ended and what it wrote has been handled. */
  readonly ended: Promise<ProcessExit>;
  readonly #process: AgentProcess;
  readonly #handlers: JsonLinesHandlers;
  #heardAt = performance.now();
  #stopping: Promise<void> | undefined;

  private constructor(process: AgentProcess, handlers: JsonLinesHandlers) {
    this.#process = process;
    this.#handlers = handlers;
    this.ended = this.#run();
  }

  /** @throws an error with `code` when the program cannot be started */
  static async start(
    context: ProcessContext,
    request: ProcessRequest,
    handlers: JsonLinesHandlers,
  ): Promise<JsonLinesProcess> {
    return new JsonLinesProcess(await startProcess(context, request), handlers);
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Milliseconds since the process last said something, or was last told something. */
  get silentMs(): number {
    return performance.now() - this.#heardAt;
  }

  /** Says something to the process. One that has ended does not hear it. */
  send(message: JsonObject): void {
    this.#heardAt = performance.now();
    if (this.#process.stdin.writable) this.#process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Ends the process and its group: by the end of its input, else by force. Takes some seconds at most. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#process.stdin.end();
    if (!(await this.#exitsWithin(STOP_MS))) {
      this.#process.kill('SIGTERM');
      if (!(await this.#exitsWithin(STOP_MS))) this.#process.kill();
    }
    await this.ended;
  }

  async #exitsWithin(ms: number): Promise<boolean> {
    const timer = new AbortController();
    const exited = this.#process.exited.then(() => true);
    const late = sleep(ms, false, { signal: timer.signal }).catch(() => false);
    try {
      return await Promise.race([exited, late]);
    } finally {
      timer.abort();
    }
  }

  async #run(): Promise<ProcessExit> {
    const { stdout, stderr, exited } = this.#process;
    const read = Promise.all([this.#readMessages(stdout), this.#readLog(stderr)]);
    const exit = await exited;
    // Whatever else is in its group has lost the one that it worked for.
    this.#process.kill();
    const cut = setTimeout(() => {
      stdout.destroy();
      stderr.destroy();
    }, REST_MS);
    await read;
    clearTimeout(cut);
    return exit;
  }

  async #readMessages(stdout: Readable): Promise<void> {
    let line = '';
    let tooLong = false;
    await this.#readText(stdout, async (text) => {
      const pieces = text.split('\n');
      const last = pieces.pop() ?? '';
      for (const piece of pieces) {
        if (!tooLong) await this.#handle(line + piece);
        line = '';
        tooLong = false;
      }
      line = tooLong ? '' : line + last;
      if (line.length > LINE_CHARS) {
        this.#handlers.onLog('A line of output was too long and was left out.\n');
        line = '';
        tooLong = true;
      }
    });
    if (line !== '' && !tooLong) await this.#handle(line);
  }

  async #handle(line: string): Promise<void> {
    if (line.trim() === '') return;
    this.#heardAt = performance.now();
    const message = parse(line);
    if (message === undefined) this.#handlers.onLog(`${line}\n`);
    else await this.#handlers.onMessage(message);
  }

  #readLog(stderr: Readable): Promise<void> {
    return this.#readText(stderr, (text) => this.#handlers.onLog(text));
  }

  async #readText(stream: Readable, take: (text: string) => void | Promise<void>): Promise<void> {
    const decoder = new StringDecoder('utf8');
    try {
      for await (const chunk of stream) await take(decoder.write(chunk));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') {
        this.#handlers.onLog(`Its output could not be read: ${String(error)}\n`);
        stream.destroy();
      }
    }
  }
}

function parse(line: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
