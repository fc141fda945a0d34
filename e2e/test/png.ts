import { inflateSync } from 'node:zlib';

/** A decoded picture. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** The red, green and blue of a pixel, 0 to 255 each. */
  at(x: number, y: number): readonly [number, number, number];
}

const RGB_BYTES = 3;

/** Decodes a PNG of 8-bit RGB without interlacing. https://www.w3.org/TR/png-3/ Throws for any other data. */
export function decodePng(data: Uint8Array): Picture {
  const file = Buffer.from(data);
  if (file.toString('latin1', 1, 4) !== 'PNG') throw new Error('the data is no PNG');
  const parts: Buffer[] = [];
  for (let at = 8; at < file.length; at += 12 + file.readUInt32BE(at)) {
    const content = file.subarray(at + 8, at + 8 + file.readUInt32BE(at));
    if (file.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(content);
  }
  const [width, height] = [file.readUInt32BE(16), file.readUInt32BE(20)];
  if (file.readUInt32BE(24) !== 0x08020000) throw new Error('the PNG is not 8-bit RGB');
  const pixels = unfilter(inflateSync(Buffer.concat(parts)), width * RGB_BYTES, height);
  return {
    width,
    height,
    at(x, y) {
      const [red = 0, green = 0, blue = 0] = pixels.subarray((y * width + x) * RGB_BYTES);
      return [red, green, blue];
    },
  };
}

/** Each row is stored as differences from its neighbours, in one of five ways that its first byte names. */
function unfilter(stored: Buffer, stride: number, height: number): Buffer {
  const pixels = Buffer.alloc(stride * height);
  for (let row = 0; row < height; row += 1) {
    const filter = stored[row * (stride + 1)] ?? 0;
    for (let column = 0; column < stride; column += 1) {
      const at = row * stride + column;
      const left = column < RGB_BYTES ? 0 : (pixels[at - RGB_BYTES] ?? 0);
      const up = row === 0 ? 0 : (pixels[at - stride] ?? 0);
      const corner = column < RGB_BYTES || row === 0 ? 0 : (pixels[at - stride - RGB_BYTES] ?? 0);
      const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0;
      pixels[at] = (stored[row * (stride + 1) + 1 + column] ?? 0) + predicted;
    }
  }
  return pixels;
}

/** The neighbour that is nearest to a plane through all three. */
function paeth(left: number, up: number, corner: number): number {
  const estimate = left + up - corner;
  const [toLeft, toUp, toCorner] = [left, up, corner].map((value) => Math.abs(estimate - value));
  if (toLeft === undefined || toUp === undefined || toCorner === undefined) return corner;
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}
