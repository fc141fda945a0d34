import { type BrowserWindow, HTMLElement, type HTMLImageElement, PropertySymbol } from 'happy-dom';
import { type LoadedImage, loadPicture } from '../drawing/index.ts';
import { sourceOf } from './address.ts';
import type { Loading } from './loading.ts';

type Hook = (...values: readonly unknown[]) => void;

interface State {
  readonly source: string;
  image: LoadedImage | undefined;
  done: boolean;
  loaded: Promise<void>;
}

/** The pixels of a page's image elements. */
export class ImageElements {
  readonly #states = new WeakMap<object, State>();
  readonly #loading: Loading;

  constructor(loading: Loading) {
    this.#loading = loading;
  }

  /** What to draw for a value that a page passes to its canvas. Undefined: an image that is not loaded. */
  readonly drawable = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    if ('tagName' in value && value.tagName === 'IMG') return this.#states.get(value)?.image;
    return value;
  };

  /** Gives the image elements of a window their functions. */
  install(window: BrowserWindow): void {
    const prototype = window.HTMLImageElement.prototype;
    const states = this.#states;
    const start = (element: HTMLImageElement) => this.#start(window, element);
    const hook = (name: symbol, then: (element: HTMLImageElement) => void): PropertyDescriptor => {
      const inherited: Hook = Reflect.get(HTMLElement.prototype, name);
      return {
        configurable: true,
        value(this: HTMLImageElement, attribute: { name: string }, ...more: unknown[]) {
          inherited.call(this, attribute, ...more);
          if (attribute.name === 'src') then(this);
        },
      };
    };
    Object.defineProperties(prototype, {
      complete: getter(function (this: HTMLImageElement) {
        return states.get(this)?.done ?? true;
      }),
      naturalWidth: getter(function (this: HTMLImageElement) {
        return states.get(this)?.image?.naturalWidth ?? 0;
      }),
      naturalHeight: getter(function (this: HTMLImageElement) {
        return states.get(this)?.image?.naturalHeight ?? 0;
      }),
      width: sideOf('width', (element) => states.get(element)?.image?.naturalWidth),
      height: sideOf('height', (element) => states.get(element)?.image?.naturalHeight),
      decode: {
        configurable: true,
        value(this: HTMLImageElement) {
          return states.get(this)?.loaded ?? Promise.resolve();
        },
      },
      [PropertySymbol.onSetAttribute]: hook(PropertySymbol.onSetAttribute, start),
      [PropertySymbol.onRemoveAttribute]: hook(PropertySymbol.onRemoveAttribute, (element) =>
        states.delete(element),
      ),
    });
  }

  #start(window: BrowserWindow, element: HTMLImageElement): void {
    const source = element.getAttribute('src') ?? '';
    const state: State = { source, image: undefined, done: false, loaded: Promise.resolve() };
    this.#states.set(element, state);
    // As in browsers, the page's load event waits for the images that were named before it.
    const ready = readinessOf(window);
    const task = ready.startTask();
    state.loaded = this.#load(window, element, state).finally(() => ready.endTask(task));
    // A page that does not call decode() learns of a failure from the event.
    state.loaded.catch(() => undefined);
    this.#loading.track(state.loaded);
  }

  async #load(window: BrowserWindow, element: HTMLImageElement, state: State): Promise<void> {
    const isCurrent = () => this.#states.get(element) === state;
    try {
      const image = await loadPicture(sourceOf(new URL(state.source, window.location.href)));
      if (!isCurrent()) return;
      state.image = image;
      state.done = true;
    } catch (error) {
      if (isCurrent()) {
        state.done = true;
        element.dispatchEvent(new window.Event('error'));
      }
      throw error;
    }
    element.dispatchEvent(new window.Event('load'));
  }
}

interface Readiness {
  startTask(): number;
  endTask(task: number): void;
}

/** What the load event of a window waits for. */
function readinessOf(window: BrowserWindow): Readiness {
  return Reflect.get(window, PropertySymbol.readyStateManager);
}

function getter(get: (this: HTMLImageElement) => unknown): PropertyDescriptor {
  return { configurable: true, get };
}

/** The side that a page set, else that of the picture. */
function sideOf(
  name: 'width' | 'height',
  natural: (element: HTMLImageElement) => number | undefined,
): PropertyDescriptor {
  return {
    configurable: true,
    get(this: HTMLImageElement) {
      const set = Number.parseInt(this.getAttribute(name) ?? '', 10);
      return set > 0 ? set : (natural(this) ?? 0);
    },
    set(this: HTMLImageElement, value: unknown) {
      this.setAttribute(name, String(value));
    },
  };
}
