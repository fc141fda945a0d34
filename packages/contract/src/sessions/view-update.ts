/**
 * The live view of a desktop, which a client asks for with a `watch` call: what has changed on the display, as binary
 * messages. They have no `seq`, are not kept, and reach only the clients that asked for them.
 *
 * A message begins with a header of 16 bytes. All numbers are unsigned and big-endian.
 *
 * | Bytes | Content |
 * |---|---|
 * | 0 to 3 | `svcv` in ASCII, with which no PNG or JPEG begins: it tells an update from a screenshot |
 * | 4 | version of this layout: 1 |
 * | 5 | flags: 1 when the client now has the whole display as it was at one moment, else 0; more follows then |
 * | 6 to 7 | number of regions |
 * | 8 to 11 | number of the update, rising within a connection; the client confirms it with `view_ack` |
 * | 12 to 15 | width and height of the display in pixels |
 *
 * Each region follows with a header of 16 bytes and its image.
 *
 * | Bytes | Content |
 * |---|---|
 * | 0 to 7 | x, y, width and height in pixels of the display, 2 bytes each |
 * | 8 | format of the image: 1 for JPEG |
 * | 9 to 11 | 0 |
 * | 12 to 15 | length of the image in bytes |
 */

/** A rectangle of the display whose content has changed. */
export interface ViewRegion {
  /** Position of its top left corner, and its size, in pixels of the display. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** A JPEG of this width and height. */
  readonly image: Uint8Array;
}

/** One message of a live view. */
export interface ViewUpdate {
  /** Rises within a connection, by any step. */
  readonly number: number;
  /** Whether the client, once it has drawn this, has the whole display as it was at one moment. */
  readonly isCurrent: boolean;
  /** Size of the display in pixels. */
  readonly width: number;
  readonly height: number;
  readonly regions: readonly ViewRegion[];
}

const MAGIC = 0x73766376;
const VERSION = 1;
const CURRENT = 1;
const JPEG = 1;
const HEADER_BYTES = 16;
/** Bytes of a region on top of those of its image. */
export const VIEW_REGION_BYTES = 16;

/** Whether a binary message belongs to a live view; any other is a screenshot. */
export function isViewUpdate(message: Uint8Array): boolean {
  return message.length >= HEADER_BYTES && viewOf(message).getUint32(0) === MAGIC;
}

/**
 * Reads a message of a live view. The images are parts of its bytes, not copies; that they are JPEGs is not checked.
 * Undefined for other bytes, another version, regions outside the display and lengths that do not fit.
 */
export function readViewUpdate(message: Uint8Array): ViewUpdate | undefined {
  if (!isViewUpdate(message)) return undefined;
  const view = viewOf(message);
  if (view.getUint8(4) !== VERSION || view.getUint8(5) > CURRENT) return undefined;
  const display = { width: view.getUint16(12), height: view.getUint16(14) };
  const regions: ViewRegion[] = [];
  let at = HEADER_BYTES;
  for (let left = view.getUint16(6); left > 0; left -= 1) {
    if (message.length - at < VIEW_REGION_BYTES) return undefined;
    const [x, y] = [view.getUint16(at), view.getUint16(at + 2)];
    const [width, height] = [view.getUint16(at + 4), view.getUint16(at + 6)];
    const length = view.getUint32(at + 12);
    at += VIEW_REGION_BYTES;
    const isInside = x + width <= display.width && y + height <= display.height;
    if (!isInside || width === 0 || height === 0) return undefined;
    if (view.getUint32(at - 8) !== JPEG << 24 || length > message.length - at) return undefined;
    regions.push({ x, y, width, height, image: message.subarray(at, at + length) });
    at += length;
  }
  if (at !== message.length) return undefined;
  const isCurrent = view.getUint8(5) === CURRENT;
  return { number: view.getUint32(8), isCurrent, ...display, regions };
}

/** Writes a message of a live view. Its numbers must fit into their bytes. */
export function writeViewUpdate(update: ViewUpdate): Uint8Array {
  const { number, isCurrent, width, height, regions } = update;
  const bytes = regions.reduce((sum, { image }) => sum + VIEW_REGION_BYTES + image.length, 0);
  const message = new Uint8Array(HEADER_BYTES + bytes);
  const view = viewOf(message);
  view.setUint32(0, MAGIC);
  view.setUint8(4, VERSION);
  view.setUint8(5, isCurrent ? CURRENT : 0);
  view.setUint16(6, regions.length);
  view.setUint32(8, number);
  view.setUint16(12, width);
  view.setUint16(14, height);
  let at = HEADER_BYTES;
  for (const region of regions) {
    view.setUint16(at, region.x);
    view.setUint16(at + 2, region.y);
    view.setUint16(at + 4, region.width);
    view.setUint16(at + 6, region.height);
    view.setUint8(at + 8, JPEG);
    view.setUint32(at + 12, region.image.length);
    message.set(region.image, at + VIEW_REGION_BYTES);
    at += VIEW_REGION_BYTES + region.image.length;
  }
  return message;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
