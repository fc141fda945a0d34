import { type Canvas, createCanvas, Image, SvgExportFlag } from '@napi-rs/canvas';
import { differs } from './differs.ts';

/**
 * A drawing as SVG with the size of `raster`, the same drawing in pixels. SVG written by Skia leaves some things out, such
 * as shadows, filters, blend modes and emoji. The text is drawn and compared with the pixels: if they differ, the SVG
 * contains the pixels as an image instead.
 */
export function encodeSvg(canvas: Canvas, raster: Canvas): Buffer {
  const { width, height } = raster;
  const page = createCanvas(width, height, SvgExportFlag.ConvertTextToPaths);
  page.getContext('2d').drawCanvas(canvas, 0, 0, width, height);
  const vector = orderRadialGradients(page.getContent().toString());
  return Buffer.from(isFaithful(vector, raster) ? vector : imageIn(raster));
}

/** Skia exchanges the two circles of a radial gradient. */
function orderRadialGradients(svg: string): string {
  return svg.replace(
    /(<radialGradient\b[^>]*?) fx="([^"]*)" fy="([^"]*)" fr="([^"]*)" cx="([^"]*)" cy="([^"]*)" r="([^"]*)"/g,
    '$1 fx="$5" fy="$6" fr="$7" cx="$2" cy="$3" r="$4"',
  );
}

function isFaithful(svg: string, raster: Canvas): boolean {
  const { width, height } = raster;
  const image = new Image();
  image.src = Buffer.from(svg);
  const drawn = createCanvas(width, height);
  const context = drawn.getContext('2d');
  context.drawImage(image, 0, 0, width, height);
  const expected = raster.getContext('2d').getImageData(0, 0, width, height);
  return !differs(context.getImageData(0, 0, width, height).data, expected.data, width);
}

function imageIn(raster: Canvas): string {
  const { width, height } = raster;
  const size = `width="${width}" height="${height}"`;
  const data = raster.encodeSync('png').toString('base64');
  return [
    '<?xml version="1.0" encoding="utf-8" ?>',
    `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ${size}>`,
    `\t<image ${size} xlink:href="data:image/png;base64,${data}"/>`,
    '</svg>\n',
  ].join('\n');
}
