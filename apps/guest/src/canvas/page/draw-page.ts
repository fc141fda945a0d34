import { readFile } from 'node:fs/promises';
import { type Canvas, DOMMatrix, ImageData, Path2D } from '@napi-rs/canvas';
import { BrowserErrorCaptureEnum, type BrowserWindow, Window } from 'happy-dom';
import type { Job } from '../arguments.ts';
import { DEFAULT_SIZE } from '../limits.ts';
import { addressOf } from './address.ts';
import { CanvasElements } from './canvas-elements.ts';
import { shareDeclarations } from './classic-scripts.ts';
import { installFonts } from './fonts.ts';
import { ImageElements } from './image-elements.ts';
import { installLayout } from './layout.ts';
import { Loading } from './loading.ts';
import { PageClock } from './page-clock.ts';
import { localFiles } from './resources.ts';

/**
 * Runs the scripts of a page in order, then its timers and animation frames. Answers the page's first canvas element.
 * Rejects with whatever a script throws, and if the page has no canvas.
 */
export async function drawPage({ input, frames, width, height }: Job): Promise<Canvas> {
  const url = addressOf(input);
  const viewport = { width: width ?? DEFAULT_SIZE.width, height: height ?? DEFAULT_SIZE.height };
  const clock = new PageClock();
  const loading = new Loading();
  const images = new ImageElements(loading);
  const canvases = new CanvasElements(images.drawable);
  // Read first: the window would announce at once that it has loaded nothing.
  const html = await readFile(input, 'utf8');
  const window = new Window({
    url: url.href,
    ...viewport,
    console,
    settings: {
      enableJavaScriptEvaluation: true,
      suppressInsecureJavaScriptEnvironmentWarning: true,
      // An error of a script ends the rendering.
      errorCapture: BrowserErrorCaptureEnum.disabled,
      fetch: { interceptor: localFiles(loading), disableSameOriginPolicy: true },
    },
  });
  canvases.install(window);
  images.install(window);
  shareDeclarations(window);
  installLayout(window, viewport);
  installFonts(window, url, loading);
  installGlobals(window, clock, canvases);
  const fetch = window.fetch.bind(window);
  window.fetch = (...request) => loading.track(fetch(...request));
  const loaded = new Promise((resolve) => window.addEventListener('load', resolve));
  const missing = missingScripts(window);
  window.document.write(html);
  await loaded;
  await clock.run(frames, () => loading.settled());
  // Waits for what is loaded in other ways than `fetch` and images, which takes a fifth of a second to find out.
  await window.happyDOM.waitUntilComplete();
  await clock.run(frames, () => loading.settled());
  if (missing.size > 0)
    throw new Error(`the page's script ${[...missing].join(', ')} cannot be loaded`);
  const canvas = window.document.querySelector('canvas');
  if (canvas === null) throw new Error('the page has no canvas element');
  return canvases.of(canvas);
}

/** The scripts that a page names and that cannot be loaded, as they become known. */
function missingScripts(window: BrowserWindow): Set<string> {
  const missing = new Set<string>();
  const prototype = window.HTMLScriptElement.prototype;
  const { dispatchEvent } = prototype;
  prototype.dispatchEvent = function (event) {
    if (event.type === 'error') missing.add(this.getAttribute('src') ?? '');
    return dispatchEvent.call(this, event);
  };
  return missing;
}

/** The classes and functions of a window that need pixels or the page's time. */
function installGlobals(window: BrowserWindow, clock: PageClock, canvases: CanvasElements): void {
  Object.assign(window, clock.functions, {
    DOMMatrix,
    ImageData,
    Path2D,
    // Called with `new`, which answers the canvas.
    OffscreenCanvas: function OffscreenCanvas(width: number, height: number) {
      return canvases.offscreen({ width, height });
    },
    createImageBitmap: async (source: unknown) => canvases.bitmapOf(source),
  });
  Object.defineProperty(window.performance, 'now', { value: () => clock.now });
}
