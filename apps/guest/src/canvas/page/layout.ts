import type { BrowserWindow, HTMLCanvasElement } from 'happy-dom';
import type { Size } from '../limits.ts';

/**
 * Gives canvas elements and the page a size: a page is not laid out, but programs ask for these sizes. A canvas has the
 * size of its style in pixels or percent of the viewport, else that of its pixels.
 */
export function installLayout(window: BrowserWindow, viewport: Size): void {
  const sizeOf = (element: HTMLCanvasElement): Size => ({
    width: styled(element.style.width, viewport.width) ?? element.width,
    height: styled(element.style.height, viewport.height) ?? element.height,
  });
  define(window.HTMLCanvasElement.prototype, sizeOf, window);
  for (const element of [window.HTMLHtmlElement.prototype, window.HTMLBodyElement.prototype]) {
    define(element, () => viewport, window);
  }
}

function styled(length: string, whole: number): number | undefined {
  const match = /^([\d.]+)(px|%|vw|vh)$/.exec(length);
  if (match === null) return undefined;
  const value = Number(match[1]);
  return match[2] === 'px' ? value : (value * whole) / 100;
}

function define<T extends object>(
  prototype: T,
  sizeOf: (element: T) => Size,
  window: BrowserWindow,
): void {
  const side = (name: keyof Size): PropertyDescriptor => ({
    configurable: true,
    get(this: T) {
      return sizeOf(this)[name];
    },
  });
  Object.defineProperties(prototype, {
    clientWidth: side('width'),
    offsetWidth: side('width'),
    clientHeight: side('height'),
    offsetHeight: side('height'),
    getBoundingClientRect: {
      configurable: true,
      value(this: T) {
        const { width, height } = sizeOf(this);
        return new window.DOMRect(0, 0, width, height);
      },
    },
  });
}
