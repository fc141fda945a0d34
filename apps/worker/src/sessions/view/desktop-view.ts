import { type CaptureRequest, LIMITS, readViewUpdate } from '@svc/contract';
import { type KeyedTokenBuckets, TokenBucket } from '@svc/service-kit/concurrency';
import type { SessionMetrics } from '../metrics.ts';
import { DisplayTiles } from './display-tiles.ts';
import { type Viewer, type ViewSettings, Watcher } from './watcher.ts';

const BURST_SECONDS = 2;
/** No two requests are nearer to each other, however many clients begin to watch. */
const CAPTURE_INTERVAL_MS = 1000 / LIMITS.viewFpsMax;
/** After an answer that is none, which only a guest that lies gives. */
const REFUSED_PAUSE_MS = 5_000;

/** The guest, as far as a live view asks it for pictures. */
export interface Capturer {
  /** Asks for the changes since the last answer. Replaces a request that is not answered. */
  capture(request: CaptureRequest): void;
  /** Withdraws the request. */
  stopCapture(): void;
}

export interface DesktopViewOptions {
  readonly guest: Capturer;
  readonly tenantId: string;
  /** The bytes of all live views of each tenant on this worker. */
  readonly tenants: KeyedTokenBuckets;
  readonly metrics: Pick<SessionMetrics, 'viewShown'>;
}

/**
 * The live view of one desktop. It asks the guest for what has changed when a client may get it, keeps the newest picture
 * of each tile, and sends each client the tiles that it lacks. So the guest does nothing while nobody watches, and
 * whatever it sends unasked is dropped; a client that is slow, or has used up its rate, gets fewer and newer pictures.
 */
export class DesktopView {
  readonly #options: DesktopViewOptions;
  readonly #tiles = new DisplayTiles();
  /** Those who watch, the one that was served last at the end. */
  readonly #watchers = new Set<Watcher>();
  readonly #rate: TokenBucket;
  #timer: NodeJS.Timeout | undefined;
  /** The request that the guest has not answered. */
  #request: CaptureRequest | undefined;
  #lastId = 0;
  #nextCaptureAt = 0;

  constructor(options: DesktopViewOptions) {
    this.#options = options;
    const perSecond = LIMITS.viewBytesPerSecondAndSession;
    this.#rate = new TokenBucket({ perSecond, burst: perSecond * BURST_SECONDS });
  }

  /** A client that may watch. */
  watcherOf(viewer: Viewer): Watcher {
    return new Watcher(viewer);
  }

  /** Begins to show a client the desktop, or changes how. */
  watch(watcher: Watcher, settings: ViewSettings): void {
    watcher.start(settings);
    this.#watchers.add(watcher);
    this.#serve();
  }

  unwatch(watcher: Watcher): void {
    watcher.stop();
    if (!this.#watchers.delete(watcher)) return;
    if (this.#watchers.size > 0) return;
    // The next view begins with the whole display.
    this.#tiles.clear();
    if (this.#request !== undefined) this.#options.guest.stopCapture();
    this.#request = undefined;
    clearTimeout(this.#timer);
  }

  acknowledge(watcher: Watcher, number: number): void {
    watcher.acknowledge(number);
    this.#serve();
  }

  /** Takes what the guest has sent. Only the answer to the last request counts, and only once. */
  captured({ id, update }: { readonly id: number; readonly update: string }): void {
    if (id !== this.#request?.id) return;
    this.#request = undefined;
    const content = readViewUpdate(Buffer.from(update, 'base64'));
    if (content === undefined || !this.#tiles.take(content)) {
      this.#tiles.clear();
      this.#nextCaptureAt = performance.now() + REFUSED_PAUSE_MS;
    }
    this.#serve();
  }

  /** Sends whoever may get something what it lacks, and asks the guest for more once somebody lacks nothing. */
  #serve(): void {
    clearTimeout(this.#timer);
    let nextMs = Number.POSITIVE_INFINITY;
    for (const watcher of [...this.#watchers]) {
      let waitMs = this.#waitMs(watcher);
      if (waitMs === 0 && this.#send(watcher)) waitMs = this.#waitMs(watcher);
      else if (waitMs === 0) waitMs = this.#capture();
      nextMs = Math.min(nextMs, waitMs ?? nextMs);
    }
    if (nextMs === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.#serve(), Math.ceil(nextMs));
    this.#timer.unref();
  }

  #waitMs(watcher: Watcher): number | undefined {
    const ownMs = watcher.waitMs();
    if (ownMs === undefined) return undefined;
    const { tenants, tenantId } = this.#options;
    return Math.max(ownMs, this.#rate.spend(0), tenants.debtMs(tenantId));
  }

  #send(watcher: Watcher): boolean {
    const { tenants, tenantId, metrics } = this.#options;
    const bytes = watcher.send(this.#tiles);
    if (bytes === 0) return false;
    metrics.viewShown(bytes);
    this.#rate.spend(bytes);
    tenants.spend(tenantId, bytes);
    this.#watchers.delete(watcher);
    this.#watchers.add(watcher);
    return true;
  }

  /** Asks the guest for changes, unless it has yet to answer. Returns the milliseconds until it may be asked. */
  #capture(): number | undefined {
    if (this.#request !== undefined) return undefined;
    const now = performance.now();
    if (now < this.#nextCaptureAt) return this.#nextCaptureAt - now;
    this.#nextCaptureAt = now + CAPTURE_INTERVAL_MS;
    this.#lastId += 1;
    const qualities = [...this.#watchers].map(({ settings }) => settings?.quality ?? 0);
    const whole = !this.#tiles.isComplete;
    this.#request = { id: this.#lastId, whole, quality: Math.max(...qualities) };
    this.#options.guest.capture(this.#request);
    return undefined;
  }
}
