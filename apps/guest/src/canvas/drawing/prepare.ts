import { setTextRenderer } from '@napi-rs/canvas';

/** Makes text look as in Chromium: the same font for each generic family, the same gamma. */
export function prepareDrawing(): void {
  setTextRenderer('system');
}
