import { expect, it } from 'vitest';
import { jpeg } from '../../../test/display.ts';
import { jpegSize } from './jpeg-size.ts';

const hex = (text: string) => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'));

it('is found behind the segments before the frame, in every kind of frame', () => {
  expect(jpegSize(jpeg(128, 32))).toEqual({ width: 128, height: 32 });
  expect(jpegSize(hex('ffd8 ffc2 0011 08 0102 0304 03'))).toEqual({ width: 772, height: 258 });
  // Huffman tables, whose marker lies among those of frames.
  const tables = 'ffd8 ffc4 0004 0000';
  expect(jpegSize(hex(`${tables} ffcf 0011 08 0001 0002 03`))).toEqual({ width: 2, height: 1 });
});

it.each([
  ['nothing', ''],
  ['a PNG', '89504e470d0a1a0a0000000d49484452'],
  ['a JPEG that ends before its size', 'ffd8 ffc0 0011 08 0102'],
  ['a JPEG without a frame', 'ffd8 ffe0 0004 0000 ffe0 0004 0000 ffd9'],
  ['a segment that goes back', 'ffd8 ffe0 0000 0000 0000 0000 0000'],
  ['a segment that ends far behind the end', 'ffd8 ffe0 ffff 0000 0000 0000 0000'],
  ['no marker where one belongs', 'ffd8 0011 0011 0011 0011 0011 0011 0011'],
])('is unknown for %s', (_what, content) => {
  expect(jpegSize(hex(content))).toBeUndefined();
});
