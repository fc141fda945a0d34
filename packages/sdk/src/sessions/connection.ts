/// <reference lib="esnext.disposable" preserve="true" />

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ClientFrame,
  type DesktopCallName,
  type DesktopCalls,
  isViewUpdate,
  type WatchArguments,
} from '@svc/contract';
import { SvcError } from '../errors.ts';
import { DesktopView, isViewAnswer } from './desktop-view.ts';
import { gaveUp, isOrderlyEnd, isWithoutUpstream, mayPass } from './ends.ts';
import { FrameQueue } from './frame-queue.ts';
import { frameOf, type SessionFrame } from './frames.ts';
import { openSocket } from './open-socket.ts';
import type { ConnectionAddress, ConnectionParts, ConnectOptions } from './options.ts';
import { Outbox } from './outbox.ts';
import { mostTries, reconnectDelayMs } from './reconnects.ts';
import { Sequence } from './sequence.ts';
import type { SessionSocket, SocketEnd } from './socket.ts';
import { Starts } from './starts.ts';

/**
 * A live connection to a session. Yields its frames, each numbered one once and in order, across reconnects. It ends
 * with the session or with {@link close}; leaving a loop over its frames does not end it.
 *
 * Frames are sent at most once: one in transit when the connection breaks may be lost.
 *
 * If the session loses its machine, it is started again from its last saved task, and the loop yields another `ready`:
 * with the next `generation`, behind the frames that were saved, and with the ids of the tasks and commands that are
 * `unanswered`. Nobody works on these any more. Give a task again, with `id` so that it can be told apart:
 *
 * ```ts
 * if (frame.type === 'ready' && frame.unanswered?.includes('haiku')) connection.task(prompt, { id: 'haiku' });
 * ```
 */
export class SessionConnection implements AsyncIterable<SessionFrame>, AsyncDisposable {
  /** Resolves with the close of the session's WebSocket; rejects with the error that the loop throws. */
  readonly closed: Promise<SocketEnd>;
  readonly #address: ConnectionAddress;
  readonly #options: ConnectOptions;
  readonly #parts: ConnectionParts;
  readonly #sequence: Sequence;
  readonly #queue = new FrameQueue((isFull) => this.#socket?.setPaused(isFull));
  readonly #starts = new Starts();
  readonly #outbox = new Outbox((frame) => this.#starts.sent(frame));
  readonly #stop = new AbortController();
  #socket: SessionSocket | undefined;
  /** Whether any WebSocket has been ready so far, and whether the current one is. */
  #everReady = false;
  #wasReady = false;
  #isOver = false;
  #view: DesktopView | undefined;
  #views = 0;

  constructor(address: ConnectionAddress, options: ConnectOptions, parts: ConnectionParts) {
    this.#address = address;
    this.#options = options;
    this.#parts = parts;
    this.#sequence = new Sequence(options.afterSeq);
    this.closed = this.#run();
    // The loop over the frames throws the error.
    this.closed.then(
      () => this.#view?.finish({}),
      (error) => this.#view?.finish({ error }),
    );
  }

  /** The number of the last received frame. As `afterSeq` of another connection, it continues from here. */
  get lastSeq(): number | undefined {
    return this.#sequence.last;
  }

  /** Gives the agent a task. Its `task_started` and `task_completed` frames repeat `id`. */
  task(prompt: string, { id }: { readonly id?: string } = {}): void {
    this.send({ type: 'task', prompt, ...(id === undefined ? {} : { id }) });
  }

  /** Runs a shell command alongside the agent. Its `stdout`, `stderr` and `exit` frames repeat `id` if given. */
  exec(command: string, { id }: { readonly id?: string } = {}): void {
    this.send({ type: 'exec', command, ...(id === undefined ? {} : { id }) });
  }

  /** Interrupts the running task, or the one with this id. */
  interrupt({ id }: { readonly id?: string } = {}): void {
    this.send({ type: 'interrupt', ...(id === undefined ? {} : { id }) });
  }

  /**
   * Uses the desktop of a session with the template `cua`: its `tool_result` frame repeats `id`. After the one of a
   * `screenshot`, a `screenshot` frame has the picture, which every client of the session sees. A call that cannot be
   * carried out has a result with `is_error`; without a desktop, the answer is an `error` frame `tool_not_available`.
   */
  callTool<N extends DesktopCallName>(
    name: N,
    input: DesktopCalls[N],
    { id }: { readonly id?: string } = {},
  ): void {
    const named = id === undefined ? {} : { id };
    this.send({ type: 'tool_call', name, arguments: { ...input }, ...named });
  }

  /**
   * Shows the desktop of a session with the template `cua` live. Use the mouse and the keyboard with {@link callTool}, and
   * read the frames of this connection meanwhile: a connection whose frames are not read stops the view too. The view
   * throws a SvcError when the service refuses it: `tool_not_available` without a desktop, `frame_rate`, or
   * `watch_refused` for arguments that it does not take.
   * @throws SvcError `already_watching` while another view is open, `connection_closed`
   */
  watch(settings: WatchArguments = {}): DesktopView {
    this.#mustBeOpen();
    if (this.#view !== undefined) {
      const detail = 'Leave the view that is open first.';
      throw new SvcError({ code: 'already_watching', detail });
    }
    this.#views += 1;
    const view = new DesktopView(this.#views, settings, {
      send: (frame) => {
        if (this.#wasReady && this.#socket !== undefined) this.#outbox.send(frame);
      },
      onEnd: () => {
        this.#view = undefined;
      },
    });
    this.#view = view;
    view.start();
    return view;
  }

  /**
   * Sends any frame, immediately or as soon as there is a connection.
   * @throws SvcError `connection_closed`, `frame_too_large`, `send_queue_full`
   */
  send(frame: ClientFrame): void {
    this.#mustBeOpen();
    this.#outbox.send(frame);
  }

  /** Closes the connection, not the session. Received frames can still be read. */
  async close(): Promise<void> {
    this.#stop.abort(CLOSED);
    await this.closed.catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  [Symbol.asyncIterator](): AsyncIterator<SessionFrame, undefined> {
    return { next: () => this.#queue.next() };
  }

  #mustBeOpen(): void {
    if (!this.#isOver && !this.#stop.signal.aborted) return;
    throw new SvcError({ code: 'connection_closed', detail: 'The connection has ended.' });
  }

  async #run(): Promise<SocketEnd> {
    const { signal } = this.#options;
    const abort = () => this.#stop.abort(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) abort();
    try {
      const end = await this.#connectUntilOver();
      this.#queue.end();
      return end;
    } catch (error) {
      const reason = this.#stop.signal.aborted ? this.#stop.signal.reason : error;
      if (reason === CLOSED) {
        this.#queue.end();
        return { code: 1000, reason: '' };
      }
      this.#queue.fail(reason);
      throw reason;
    } finally {
      this.#isOver = true;
      this.#socket?.close();
      signal?.removeEventListener('abort', abort);
    }
  }

  async #connectUntilOver(): Promise<SocketEnd> {
    for (let tries = 1; ; tries += 1) {
      const end = await this.#connectOnce();
      if (!(end instanceof SvcError) && isOrderlyEnd(end)) return end;
      if (!(end instanceof SvcError) && isWithoutUpstream(end) && (await this.#hasEnded())) {
        throw this.#parts.ended();
      }
      if (this.#wasReady) {
        tries = 1;
        this.#options.onStatus?.('disconnected');
      }
      if (tries > mostTries(this.#options.maxReconnects, this.#everReady)) throw gaveUp(tries, end);
      await sleep(reconnectDelayMs(tries, end, this.#parts.firstDelayMs), undefined, {
        signal: this.#stop.signal,
      });
    }
  }

  /** The end of one WebSocket, or the failure to open it. Throws permanent errors. */
  async #connectOnce(): Promise<SocketEnd | SvcError> {
    this.#wasReady = false;
    const over = Promise.withResolvers<SocketEnd>();
    const { signal } = this.#stop;
    const abort = () => over.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    over.promise.catch(() => undefined);
    const open = this.#parts.open ?? openSocket;
    const receive = (data: string | Uint8Array) => {
      try {
        this.#receive(data);
      } catch (error) {
        over.reject(error);
      }
    };
    try {
      const { connect_url: url, jwt: token } = this.#address;
      this.#socket = await open(
        {
          url: this.#resumed(url),
          token,
          ca: this.#parts.ca,
          traceparent: this.#parts.traceparent?.(),
          signal,
        },
        { message: receive, closed: over.resolve },
      );
      if (this.#wasReady) this.#opened(this.#socket);
      this.#socket.setPaused(this.#queue.isFull);
      return await over.promise;
    } catch (error) {
      if (signal.aborted || !mayPass(error) || error.code === 'frames_lost') throw error;
      return error;
    } finally {
      signal.removeEventListener('abort', abort);
      this.#outbox.shut();
      this.#socket?.close();
      this.#socket = undefined;
    }
  }

  #receive(data: string | Uint8Array): void {
    if (typeof data !== 'string' && isViewUpdate(data)) {
      this.#view?.receive(data);
      return;
    }
    const frame = frameOf(data);
    if (frame === undefined) return;
    if (isViewAnswer(frame)) {
      this.#view?.answered(frame);
    } else if (frame.type === 'ready') {
      this.#sequence.begin(frame);
      this.#starts.begin(frame);
      this.#ready();
    } else if (this.#sequence.take(frame)) {
      this.#starts.received(frame);
      this.#queue.push(frame);
      this.#yieldReady();
    }
  }

  /** A worker accepts frames only after its `ready` frame. */
  #ready(): void {
    this.#everReady = true;
    this.#wasReady = true;
    if (this.#socket !== undefined) this.#opened(this.#socket);
    this.#yieldReady();
    this.#options.onStatus?.('connected');
  }

  #yieldReady(): void {
    const ready = this.#starts.take(this.#sequence.last);
    if (ready !== undefined) this.#queue.push(ready);
  }

  /** Frames can be sent from now on. */
  #opened(socket: SessionSocket): void {
    this.#outbox.open(socket);
    this.#view?.start();
  }

  #resumed(url: string): string {
    const { last } = this.#sequence;
    if (last === undefined) return url;
    const address = new URL(url);
    address.searchParams.set('after_seq', String(last));
    return address.href;
  }

  async #hasEnded(): Promise<boolean> {
    return this.#parts.hasEnded().catch(() => false);
  }
}

/** The reason of a connection that its owner closed. */
const CLOSED = Symbol('closed');
