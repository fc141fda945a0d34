import { DesktopError } from './desktop-error.ts';

/** A rectangle in pixels of the display. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Something on the display that can be seen or used. */
export interface UiElement {
  /** The same in every answer as long as the element lives. */
  readonly id: string;
  readonly role: string;
  readonly name: string;
  readonly box: Box;
  /** From the DOM of a web page, or from the accessibility tree of a window. */
  readonly source: 'page' | 'window';
  readonly states?: readonly string[];
  readonly value?: string;
}

export interface UiElements {
  readonly elements: readonly UiElement[];
  /** There are more than were asked for, or than could be found in time. */
  readonly truncated: boolean;
}

/** A picture of the display. */
export interface Screenshot {
  readonly mediaType: 'image/png' | 'image/jpeg';
  readonly data: Buffer;
}

export interface ScreenshotOptions {
  /** Draws the boxes of the elements, with their ids. */
  readonly annotate?: boolean;
  /** Largest picture in bytes, at least 400,000. A PNG above becomes a JPEG. Default 8 MiB. */
  readonly maxBytes?: number;
}

interface Answer {
  readonly type: string;
  readonly data: Buffer;
}

/** Longer than the server's own deadline. */
const DEADLINE_MS = 45_000;
const NOT_READY = 'The desktop does not answer; it may be starting again. Try again in a moment.';

/** The UI-element detection server, which also takes the pictures. */
export class ElementServer {
  readonly #address: string;

  constructor(address: string) {
    this.#address = address;
  }

  /** @throws a DesktopError when it does not answer; the reason of `signal` when it aborts */
  async screenshot(options: ScreenshotOptions, signal: AbortSignal): Promise<Screenshot> {
    const query = new URLSearchParams();
    if (options.annotate === true) query.set('annotate', '1');
    if (options.maxBytes !== undefined) query.set('max_bytes', String(options.maxBytes));
    const { type, data } = await this.#get(`/screenshot?${query}`, signal);
    return { mediaType: type === 'image/jpeg' ? type : 'image/png', data };
  }

  /** At most `limit` elements. Throws like {@link screenshot}. */
  async elements(limit: number, signal: AbortSignal): Promise<UiElements> {
    const { data } = await this.#get(`/elements?limit=${limit}`, signal);
    return JSON.parse(data.toString());
  }

  /** One element as it is now. @throws a DesktopError when it is no longer there, else like {@link screenshot} */
  async element(id: string, signal: AbortSignal): Promise<UiElement> {
    const { data } = await this.#get(`/elements/${encodeURIComponent(id)}`, signal);
    return JSON.parse(data.toString());
  }

  /** Makes sure that the keyboard of the display has a key for each character. Throws like {@link screenshot}. */
  async bindKeys(text: string, signal: AbortSignal): Promise<void> {
    await this.#request('/keyboard', { method: 'POST', body: text }, signal);
  }

  /**
   * What has changed on the display since the update with this number, or all of it if there was none: an update of a
   * live view, see `view-update.ts` in `@svc/contract`. Waits for a change; empty if there is none within 20 s. `quality`:
   * of the pictures, 20 to 90. Throws like {@link screenshot}.
   */
  async changes(since: number, quality: number, signal: AbortSignal): Promise<Buffer> {
    const query = new URLSearchParams({ since: `${since}`, quality: `${quality}`, wait: '20' });
    const { data } = await this.#get(`/changes?${query}`, signal);
    return data;
  }

  async #get(path: string, signal: AbortSignal): Promise<Answer> {
    return await this.#request(path, {}, signal);
  }

  async #request(path: string, request: RequestInit, signal: AbortSignal): Promise<Answer> {
    const deadline = AbortSignal.timeout(DEADLINE_MS);
    let status: number;
    let type: string;
    let data: Buffer;
    try {
      const response = await fetch(`${this.#address}${path}`, {
        ...request,
        signal: AbortSignal.any([signal, deadline]),
        // A kept connection would be part of a snapshot, and broken after a restart of the server.
        headers: { connection: 'close' },
      });
      status = response.status;
      type = response.headers.get('content-type') ?? '';
      data = Buffer.from(await response.arrayBuffer());
    } catch {
      signal.throwIfAborted();
      throw new DesktopError(NOT_READY);
    }
    if (status === 200) return { type, data };
    throw new DesktopError(problemOf(data));
  }
}

function problemOf(data: Buffer): string {
  try {
    const { error } = JSON.parse(data.toString());
    return typeof error === 'string' ? `${error}.` : NOT_READY;
  } catch {
    return NOT_READY;
  }
}
