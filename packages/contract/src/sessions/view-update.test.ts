import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isViewUpdate, readViewUpdate, type ViewUpdate, writeViewUpdate } from './view-update.ts';

const UPDATE: ViewUpdate = {
  number: 0xffff_fffe,
  isCurrent: true,
  width: 1280,
  height: 800,
  regions: [
    { x: 0, y: 0, width: 128, height: 128, image: new Uint8Array([1, 2, 3]) },
    { x: 1152, y: 768, width: 128, height: 32, image: new Uint8Array() },
  ],
};

/** The update above with other bytes at an offset. */
function changed(offset: number, ...bytes: number[]): Uint8Array {
  const message = writeViewUpdate(UPDATE);
  message.set(bytes, offset);
  return message;
}

describe('an update of a live view', () => {
  it('is read as it was written, also from the middle of other bytes', () => {
    const message = writeViewUpdate(UPDATE);
    expect(Buffer.from(message).toString('hex')).toBe(
      '73766376' +
        '0101' +
        '0002' +
        'fffffffe' +
        '05000320' +
        '0000000000800080' +
        '01000000' +
        '00000003' +
        '010203' +
        '0480030000800020' +
        '01000000' +
        '00000000',
    );
    expect(readViewUpdate(message)).toEqual(UPDATE);
    const among = new Uint8Array([9, 9, ...message, 9]).subarray(2, -1);
    expect(readViewUpdate(among)).toEqual(UPDATE);
    const rest = { ...UPDATE, isCurrent: false, regions: [] };
    expect(readViewUpdate(writeViewUpdate(rest))).toEqual(rest);
  });

  it('is told from pictures', () => {
    expect(isViewUpdate(writeViewUpdate(UPDATE))).toBe(true);
    const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
    const jpeg = Buffer.from('ffd8ffe000104a46494600010100000100', 'hex');
    for (const message of [png, jpeg, Buffer.from('svcv'), Buffer.alloc(0)]) {
      expect(isViewUpdate(message)).toBe(false);
      expect(readViewUpdate(message)).toBeUndefined();
    }
  });

  it.each([
    ['of another version', changed(4, 2)],
    ['with an unknown flag', changed(5, 2)],
    ['with more regions than it has', changed(6, 0, 3)],
    ['with fewer regions than it has', changed(6, 0, 1)],
    ['with most regions that there can be', changed(6, 255, 255)],
    ['with a region right of the display', changed(16, 4, 129)],
    ['with a region below the display', changed(18, 2, 161)],
    ['with a region without a width', changed(20, 0, 0)],
    ['with a region without a height', changed(22, 0, 0)],
    ['with an image of another format', changed(24, 2)],
    ['with bytes where zeros belong', changed(25, 0, 0, 1)],
    ['with an image that is longer than the message', changed(28, 255, 255, 255, 255)],
    ['with bytes behind its end', Buffer.concat([writeViewUpdate(UPDATE), Buffer.from([0])])],
    ['that is cut off', writeViewUpdate(UPDATE).subarray(0, -1)],
  ])('%s is none', (_what, message) => {
    expect(readViewUpdate(message)).toBeUndefined();
  });

  it('is bounded by its bytes, whatever they are', () => {
    const bytes = fc.uint8Array({ maxLength: 200 });
    fc.assert(
      fc.property(bytes, (content) => {
        const message = new Uint8Array([0x73, 0x76, 0x63, 0x76, 1, ...content]);
        const read = readViewUpdate(message);
        const images = read?.regions.map(({ image }) => image.length) ?? [];
        expect(images.reduce((sum, length) => sum + length, 0)).toBeLessThan(message.length);
      }),
    );
  });
});
