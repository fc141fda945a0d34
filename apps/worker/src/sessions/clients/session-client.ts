import type { ClientFrame, ForwardedFrame, FrameErrorCode } from '@svc/contract';
import { TokenBucket } from '@svc/service-kit/concurrency';
import type { TraceOrigin } from '@svc/service-kit/tracing';
import { type Clock, timestamp } from '../../clock.ts';
import type { Connection } from '../../sandbox/connections.ts';
import type { StoredFrame } from '../journal/format.ts';
import { ClientView, isViewCall, type ViewCall } from '../view/client-view.ts';
import type { DesktopView } from '../view/desktop-view.ts';
import { errorFrame, parseClientFrame } from './client-frames.ts';
import { FrameDelivery, type FrameDeliveryOptions } from './frame-delivery.ts';

const FRAME_RATE = { perSecond: 200, burst: 1000 };
/** For errors about a client's own frames, other than those about their rate. */
const ERROR_RATE = { perSecond: 20, burst: 100 };
const RATE_ERROR_RATE = { perSecond: 1, burst: 1 };

/** The receiver of clients' frames. */
export interface FrameReceiver {
  /**
   * Forwards a frame of a client, whose trace is that of `origin`, to the agent; resumes a paused sandbox first. Returns
   * why that is not possible; undefined when it is.
   */
  forward(
    frame: ForwardedFrame,
    origin: TraceOrigin | undefined,
  ): Promise<FrameErrorCode | undefined>;
  /** Whether the sandbox is running; resumes a paused one first. Never rejects; bounded in time. */
  ensureRunning(): Promise<boolean>;
}

export interface SessionClientOptions extends FrameDeliveryOptions {
  readonly clock: Clock;
  readonly receiver: FrameReceiver;
  /** Whether it may control the desktop, and sees its pictures. */
  readonly controlsDesktop: boolean;
  readonly view: DesktopView;
  /** Whether the tenant's rate allows a `tool_call` of the desktop now. */
  readonly mayUseDesktop: (tool: string) => boolean;
  /** Where its tasks belong in its trace. */
  readonly origin?: TraceOrigin | undefined;
  readonly onFault: (error: unknown, what: string) => void;
}

/** One client of a session: forwards its frames within its rate, and delivers the session's frames to it. */
export class SessionClient implements Connection {
  readonly #options: SessionClientOptions;
  readonly #delivery: FrameDelivery;
  readonly #view: ClientView;
  readonly #frames = new TokenBucket(FRAME_RATE);
  readonly #errors = new TokenBucket(ERROR_RATE);
  readonly #rateErrors = new TokenBucket(RATE_ERROR_RATE);
  #replayed: Promise<void> = Promise.resolve();

  constructor(options: SessionClientOptions) {
    const { ws } = options;
    this.#options = options;
    this.#delivery = new FrameDelivery(options);
    const delivery = this.#delivery;
    this.#view = new ClientView(options.view, {
      get unsentBytes() {
        return delivery.unsentBytes;
      },
      showView: (update) => delivery.send(update),
    });
    // On invalid UTF-8 or an oversized message, ws closes the connection with the right code.
    ws.on('error', () => undefined);
    ws.on('message', (data: Buffer, isBinary) => this.#receive(data, isBinary));
    ws.once('close', () => this.#view.end());
  }

  /** Sends `ready`, then the frames that the client has missed. */
  start(ready: Readonly<Record<string, unknown>>): void {
    this.#delivery.send(JSON.stringify({ ...ready, ts: this.#ts() }));
    this.#replayed = this.#delivery.replay().catch((error) => {
      if (!this.#delivery.isOpen) return;
      this.#options.onFault(error, 'replay the frames of a session');
      this.close(1011, 'replay failed');
    });
  }

  /** Whether the guest should wait until this client has read more. */
  get isBehind(): boolean {
    return this.#delivery.isBehind;
  }

  /** Sends frames that were just stored. */
  show(frames: readonly StoredFrame[]): void {
    this.#delivery.show(frames);
  }

  /** Sends a picture of the desktop, if it may see it. */
  showPicture(image: Buffer): void {
    if (this.#options.controlsDesktop) this.#delivery.showPicture(image);
  }

  /** Disconnects a client that does not read. */
  disconnectSlow(): void {
    this.#delivery.disconnectSlow();
  }

  close(code: number, reason: string): void {
    this.#delivery.close(code, reason);
  }

  /** Like {@link close}, once the client has been sent every stored frame, with time to read them. */
  finish(code: number, reason: string): void {
    void this.#replayed.then(() => this.#delivery.finish(code, reason));
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (!this.#delivery.isOpen) return;
    if (!this.#frames.take()) {
      if (this.#rateErrors.take()) this.#delivery.send(errorFrame('frame_rate', this.#ts()));
      return;
    }
    const parsed = parseClientFrame(data, isBinary);
    if ('error' in parsed) this.#refuse(parsed.error);
    else this.#handle(parsed.frame);
  }

  #handle(frame: ClientFrame): void {
    if (frame.type === 'ping') {
      this.#delivery.send(JSON.stringify({ type: 'pong', ts: this.#ts() }));
    } else if (frame.type === 'view_ack') {
      this.#view.acknowledge(frame.number);
    } else {
      this.#forward(frame);
    }
  }

  #forward(frame: ForwardedFrame): void {
    const { receiver, controlsDesktop, origin, onFault } = this.#options;
    if (frame.type === 'tool_call' && !controlsDesktop) {
      this.#refuse('tool_not_available', frame.id);
      return;
    }
    if (isViewCall(frame)) {
      this.#watch(frame);
      return;
    }
    receiver.forward(frame, origin).then(
      (refusal) => {
        if (refusal !== undefined) this.#refuse(refusal, frame.id);
      },
      (error) => {
        onFault(error, 'forward a frame of a client');
        this.#refuse('busy', frame.id);
      },
    );
  }

  #watch(call: ViewCall): void {
    if (!this.#options.mayUseDesktop(call.name)) {
      this.#refuse('frame_rate', call.id);
      return;
    }
    const hasBegun = this.#view.run(call, (frame) =>
      this.#delivery.send(JSON.stringify({ ...frame, ts: this.#ts() })),
    );
    if (!hasBegun) return;
    // A view that has begun waits for the guest, so that it may be ended in the meantime.
    void this.#options.receiver.ensureRunning().then((isRunning) => {
      if (!isRunning && this.#view.end()) this.#refuse('busy', call.id);
    });
  }

  #refuse(code: FrameErrorCode, id?: string): void {
    if (this.#errors.take()) this.#delivery.send(errorFrame(code, this.#ts(), id));
  }

  #ts(): string {
    return timestamp(this.#options.clock.wall());
  }
}
