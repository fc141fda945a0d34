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

/** Longer lines are dropped. Large enough for an image read by a tool. */
const LINE_CHARS = 16 * 1024 * 1024;
/** Time limit for each step of ending a process: end of its input, then SIGTERM. */
const STOP_MS = 2_000;
/** Background processes can hold the output of an ended process open. Reading stops after this time. */
const AFTER_EXIT_MS = 2_000;

export interface JsonLinesHandlers {
  /** Receives one message. The next line is read when the returned promise settles. */
  onMessage(message: JsonObject): void | Promise<void>;
  /** Receives stderr, and output that is not valid. */
  onLog(text: string): void;
}

/** A process that exchanges JSON objects, one per line, on its standard input and output. */
export class JsonLinesProcess {
  /** Settles (never rejects) when the process has ended and its output is handled. */
  readonly ended: Promise<ProcessExit>;
  readonly #process: AgentProcess;
  readonly #handlers: JsonLinesHandlers;
  #lastMessageAt = performance.now();
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

  /** Milliseconds since the last message in either direction. */
  get silentMs(): number {
    return performance.now() - this.#lastMessageAt;
  }

  /** Sends a message. Does nothing once the process has ended. */
  send(message: JsonObject): void {
    this.#lastMessageAt = performance.now();
    if (this.#process.stdin.writable) this.#process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Ends the process and its group, within a few seconds: closes its input, then sends SIGTERM, then SIGKILL. */
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
    // The rest of the group has no purpose without its leader.
    this.#process.kill();
    const cut = setTimeout(() => {
      stdout.destroy();
      stderr.destroy();
    }, AFTER_EXIT_MS);
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
    this.#lastMessageAt = performance.now();
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
