import { DESKTOP_SIZE, LIMITS, VIEW_REGION_BYTES, writeViewUpdate } from '@svc/contract';
import { TokenBucket } from '@svc/service-kit/concurrency';
import type { DisplayTiles } from './display-tiles.ts';

const BURST_SECONDS = 2;
/** A client with more unsent bytes than this has other frames to read first. */
const BUSY_UNSENT = 64 * 1024;
const BUSY_RETRY_MS = 100;

/** The connection of a client, as far as a live view uses it. */
export interface Viewer {
  /** The bytes that wait to be sent to it. */
  readonly unsentBytes: number;
  showView(update: Uint8Array): void;
}

export interface ViewSettings {
  readonly fps: number;
  readonly quality: number;
}

/**
 * One client of a live view: which tiles it has, and when it may get the next ones. It lives as long as the connection,
 * so that a client which begins again and again has no more bandwidth than one that goes on.
 */
export class Watcher {
  readonly #viewer: Viewer;
  readonly #now: () => number;
  readonly #rate: TokenBucket;
  /** Versions by the index of the tile. */
  readonly #seen = new Map<number, number>();
  #settings: ViewSettings | undefined;
  #lastNumber = 0;
  #unacknowledged: number[] = [];
  /** Whether the client has all that was known at its last update. */
  #isCurrent = false;
  #nextPictureAt = 0;

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(viewer: Viewer, now: () => number = () => performance.now()) {
    this.#viewer = viewer;
    this.#now = now;
    const perSecond = LIMITS.viewBytesPerSecondAndClient;
    this.#rate = new TokenBucket({ perSecond, burst: perSecond * BURST_SECONDS }, now);
  }

  /** Undefined while the client does not watch. */
  get settings(): ViewSettings | undefined {
    return this.#settings;
  }

  /** The client has asked for a view: it gets the whole display first. */
  start(settings: ViewSettings): void {
    this.#settings = settings;
    this.#seen.clear();
    this.#unacknowledged = [];
    this.#isCurrent = false;
    this.#nextPictureAt = this.#now() + 1000 / settings.fps;
  }

  stop(): void {
    this.#settings = undefined;
    this.#seen.clear();
  }

  /** The client has drawn the update with this number, and those before it. */
  acknowledge(number: number): void {
    this.#unacknowledged = this.#unacknowledged.filter((sent) => sent > number);
  }

  /** The milliseconds until it may get an update; undefined while it has to acknowledge one first, or does not watch. */
  waitMs(): number | undefined {
    if (this.#settings === undefined) return undefined;
    if (this.#unacknowledged.length >= LIMITS.viewUnacknowledged) return undefined;
    const busyMs = this.#viewer.unsentBytes > BUSY_UNSENT ? BUSY_RETRY_MS : 0;
    const pictureMs = this.#isCurrent ? this.#nextPictureAt - this.#now() : 0;
    return Math.max(0, busyMs, pictureMs, this.#rate.spend(0));
  }

  /** Sends the tiles that the client lacks, or the first of them. Returns the number of bytes; 0 if it lacks none. */
  send(tiles: DisplayTiles): number {
    const missing = tiles.notIn(this.#seen);
    const [first] = missing;
    if (this.#settings === undefined || first === undefined || !tiles.isComplete) return 0;
    let bytes = 0;
    const chosen = missing.filter(({ region }) => {
      const fits = bytes < LIMITS.viewUpdateBytes;
      if (fits) bytes += VIEW_REGION_BYTES + region.image.length;
      return fits;
    });
    if (this.#isCurrent) this.#nextPictureAt = this.#now() + 1000 / this.#settings.fps;
    this.#isCurrent = chosen.length === missing.length;
    this.#lastNumber += 1;
    const update = writeViewUpdate({
      number: this.#lastNumber,
      isCurrent: this.#isCurrent,
      ...DESKTOP_SIZE,
      regions: chosen.map(({ region }) => region),
    });
    for (const { index, version } of chosen) this.#seen.set(index, version);
    this.#unacknowledged.push(this.#lastNumber);
    this.#viewer.showView(update);
    this.#rate.spend(update.length);
    return update.length;
  }
}
