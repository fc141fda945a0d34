import { type Canvas, createCanvas, type ImageData, type SKRSContext2D } from '@napi-rs/canvas';
import { type BrowserWindow, type HTMLCanvasElement, HTMLElement, PropertySymbol } from 'happy-dom';
import { checkSize, type Size } from '../limits.ts';

type Hook = (...values: readonly unknown[]) => void;

/** The pixels of a page's canvas elements. */
export class CanvasElements {
  readonly #canvases = new WeakMap<object, Canvas>();
  readonly #drawable: (source: unknown) => unknown;

  /** `drawable` answers what to draw for an element that is no canvas, such as an image. */
  constructor(drawable: (source: unknown) => unknown) {
    this.#drawable = drawable;
  }

  /** Gives the canvas elements of a window their functions. */
  install(window: BrowserWindow): void {
    const prototype = window.HTMLCanvasElement.prototype;
    const canvases = this;
    Object.assign(prototype, {
      getContext(this: HTMLCanvasElement, kind: string, attributes?: object) {
        return canvases.#context(this, kind, attributes);
      },
      toDataURL(this: HTMLCanvasElement, type?: string, quality?: unknown) {
        return canvases.of(this).toDataURL(mediaType(type), qualityOf(quality));
      },
      toBlob(
        this: HTMLCanvasElement,
        callback: (blob: Blob | null) => void,
        type?: string,
        quality?: unknown,
      ) {
        canvases.of(this).toBlob(callback, mediaType(type), qualityOf(quality));
      },
      transferControlToOffscreen(this: HTMLCanvasElement) {
        return canvases.of(this);
      },
    });
    // Setting a size empties a canvas, even if the size stays the same.
    for (const hook of [PropertySymbol.onSetAttribute, PropertySymbol.onRemoveAttribute]) {
      const inherited: Hook = Reflect.get(HTMLElement.prototype, hook);
      Object.defineProperty(prototype, hook, {
        configurable: true,
        value(this: HTMLCanvasElement, attribute: { name: string }, ...more: unknown[]) {
          inherited.call(this, attribute, ...more);
          if (attribute.name === 'width') canvases.#resize(this, 'width');
          if (attribute.name === 'height') canvases.#resize(this, 'height');
        },
      });
    }
  }

  /** The pixels of an element. */
  of(element: HTMLCanvasElement): Canvas {
    const known = this.#canvases.get(element);
    if (known !== undefined) return known;
    const size = { width: side(element.width, 300), height: side(element.height, 150) };
    checkSize(size);
    const canvas = createCanvas(size.width, size.height);
    this.#canvases.set(element, canvas);
    return canvas;
  }

  /** A canvas that is no element. */
  offscreen(size: Size): Canvas {
    checkSize(size);
    const canvas = createCanvas(size.width, size.height);
    const context = canvas.getContext('2d');
    this.#adapt(context, canvas);
    return Object.defineProperties(canvas, {
      getContext: { value: (kind: string) => (kind === '2d' ? context : null) },
      transferToImageBitmap: { value: () => this.bitmapOf(canvas) },
    });
  }

  /** A copy of the pixels of an element or a canvas: an `ImageBitmap`. */
  bitmapOf(source: unknown): Canvas {
    const image = this.#sourceOf(source);
    if (typeof image !== 'object' || image === null) {
      throw new TypeError(
        'createImageBitmap takes a canvas, an image that is loaded or image data',
      );
    }
    const { width, height } = image as Size;
    const canvas = createCanvas(width, height);
    const context = canvas.getContext('2d');
    if ('data' in image && image.data instanceof Uint8ClampedArray) {
      context.putImageData(image as ImageData, 0, 0);
    } else {
      context.drawImage(image as Canvas, 0, 0);
    }
    return Object.defineProperty(canvas, 'close', { value: () => undefined });
  }

  #resize(element: HTMLCanvasElement, name: 'width' | 'height'): void {
    const canvas = this.#canvases.get(element);
    if (canvas === undefined) return;
    const size = { width: side(element.width, 300), height: side(element.height, 150) };
    checkSize(size);
    canvas[name] = size[name];
  }

  #context(element: HTMLCanvasElement, kind: string, attributes?: object): SKRSContext2D | null {
    const canvas = this.of(element);
    const context = canvas.getContext('2d', attributes);
    if (kind !== '2d') return null;
    if (!Object.hasOwn(context, 'drawImage')) this.#adapt(context, element);
    return context;
  }

  /** Lets a context draw and name the elements of the page. */
  #adapt(context: SKRSContext2D, element: HTMLCanvasElement | Canvas): void {
    const { drawImage, createPattern } = context;
    const sourceOf = (source: unknown) => this.#sourceOf(source);
    Object.defineProperties(context, {
      canvas: { value: element, enumerable: true },
      drawImage: {
        value(source: unknown, ...place: number[]) {
          const image = sourceOf(source);
          // As in browsers, an image that is not loaded yet draws nothing.
          if (image !== undefined) Reflect.apply(drawImage, context, [image, ...place]);
        },
      },
      createPattern: {
        value(source: unknown, repetition: string | null) {
          const image = sourceOf(source);
          if (image === undefined) return null;
          return Reflect.apply(createPattern, context, [image, repetition]);
        },
      },
    });
  }

  #sourceOf(source: unknown): unknown {
    if (typeof source === 'object' && source !== null && isCanvasElement(source)) {
      return this.of(source);
    }
    return this.#drawable(source);
  }
}

function isCanvasElement(value: object): value is HTMLCanvasElement {
  return 'tagName' in value && value.tagName === 'CANVAS';
}

/** A side as browsers read it: a negative one is none. */
function side(value: number, otherwise: number): number {
  return Number.isFinite(value) && value >= 0 ? value : otherwise;
}

type MediaType = 'image/png' | 'image/jpeg' | 'image/webp';

/** As in browsers, an unknown type is PNG, and so is none. */
function mediaType(type = ''): MediaType {
  const name = type.toLowerCase();
  return name === 'image/jpeg' || name === 'image/webp' ? name : 'image/png';
}

function qualityOf(quality: unknown): number | undefined {
  return typeof quality === 'number' && quality >= 0 && quality <= 1 ? quality : undefined;
}
