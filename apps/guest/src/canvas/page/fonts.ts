import { GlobalFonts } from '@napi-rs/canvas';
import type { BrowserWindow } from 'happy-dom';
import { readResource } from '../drawing/index.ts';
import { sourceOf } from './address.ts';
import type { Loading } from './loading.ts';

/** Gives a page at `base` the class `FontFace` and `document.fonts`. A loaded font can be drawn with at once. */
export function installFonts(window: BrowserWindow, base: URL, loading: Loading): void {
  class FontFace {
    readonly family: string;
    readonly #source: string | Uint8Array;
    status = 'unloaded';

    constructor(family: string, source: string | ArrayBuffer | Uint8Array) {
      this.family = family;
      this.#source = source instanceof ArrayBuffer ? new Uint8Array(source) : source;
    }

    load(): Promise<this> {
      return loading.track(this.#load());
    }

    async #load(): Promise<this> {
      this.status = 'loading';
      const key = GlobalFonts.register(await this.#bytes(), this.family);
      this.status = key === null ? 'error' : 'loaded';
      if (key === null) throw new TypeError(`the font ${this.family} cannot be read`);
      return this;
    }

    async #bytes(): Promise<Buffer> {
      if (typeof this.#source !== 'string') return Buffer.from(this.#source);
      const match = /url\(\s*["']?([^"')]+)["']?\s*\)/.exec(this.#source);
      if (match?.[1] === undefined) throw new TypeError(`${this.#source} names no url(…)`);
      return readResource(sourceOf(new URL(match[1], base)));
    }
  }
  const fonts = {
    add: () => fonts,
    check: () => true,
    load: async () => [],
    get ready() {
      return loading.settled().then(() => fonts);
    },
  };
  Object.assign(window, { FontFace });
  Object.defineProperty(window.document, 'fonts', { value: fonts });
}
