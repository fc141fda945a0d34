import { type Canvas, createCanvas, PDFDocument, type SKRSContext2D } from '@napi-rs/canvas';
import type { Format } from '../arguments.ts';
import type { Size } from '../limits.ts';
import { encodeSvg } from './svg.ts';

const JPEG_QUALITY = 92;

/** The picture on a canvas, at this size, as a file of this format. */
export function encode(canvas: Canvas, format: Format, size: Size): Uint8Array {
  switch (format) {
    case 'png':
      return atSize(canvas, size).encodeSync('png');
    case 'jpeg':
      return onWhite(atSize(canvas, size)).encodeSync('jpeg', JPEG_QUALITY);
    case 'pdf':
      return encodePdf(canvas, size);
    case 'svg':
      return encodeSvg(canvas, atSize(canvas, size));
  }
}

function atSize(canvas: Canvas, { width, height }: Size): Canvas {
  if (canvas.width === width && canvas.height === height) return canvas;
  const scaled = createCanvas(width, height);
  scaled.getContext('2d').drawCanvas(canvas, 0, 0, width, height);
  return scaled;
}

/** JPEG has no transparency: a canvas shows on the white of a page. */
function onWhite(canvas: Canvas): Canvas {
  const { width, height } = canvas;
  const page = createCanvas(width, height);
  const context = page.getContext('2d');
  context.fillStyle = 'white';
  context.fillRect(0, 0, width, height);
  // Pixels: what the drawing blends must not blend with the white.
  context.drawImage(canvas, 0, 0);
  return page;
}

/** One page, a point of which is a pixel of the canvas. */
function encodePdf(canvas: Canvas, { width, height }: Size): Buffer {
  const document = new PDFDocument();
  const page = document.beginPage(width, height) as SKRSContext2D;
  page.drawCanvas(canvas, 0, 0, width, height);
  document.endPage();
  return document.close();
}
