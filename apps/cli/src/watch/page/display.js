/** Draws the updates of a live view. Their layout is that of view-update.ts in the contract. */

const HEADER_BYTES = 16;
const REGION_BYTES = 16;
/** Over which the pictures a second are counted, in milliseconds. */
const COUNTED_MS = 3_000;

/** The regions of an update, and its number. */
function read(buffer) {
  const view = new DataView(buffer);
  const regions = [];
  let at = HEADER_BYTES;
  for (let left = view.getUint16(6); left > 0; left -= 1) {
    const [x, y, width, height] = [0, 2, 4, 6].map((offset) => view.getUint16(at + offset));
    const length = view.getUint32(at + 12);
    const image = new Blob([new Uint8Array(buffer, at + REGION_BYTES, length)], {
      type: 'image/jpeg',
    });
    regions.push({ x, y, width, height, image });
    at += REGION_BYTES + length;
  }
  return { number: view.getUint32(8), regions };
}

export class Display {
  #context;
  #drawnAt = [];

  constructor(canvas) {
    this.#context = canvas.getContext('2d', { alpha: false });
  }

  /** Draws an update, all of its regions at once. Returns its number, and why regions could not be drawn. */
  async draw(buffer) {
    const { number, regions } = read(buffer);
    const pictures = await Promise.allSettled(regions.map(({ image }) => createImageBitmap(image)));
    for (const [index, { value: picture }] of pictures.entries()) {
      const { x, y, width, height } = regions[index];
      if (picture === undefined) continue;
      this.#context.drawImage(picture, 0, 0, width, height, x, y, width, height);
      picture.close();
    }
    this.#drawnAt.push(performance.now());
    return { number, failed: pictures.find(({ status }) => status === 'rejected')?.reason };
  }

  /** The pictures that were drawn in a second, on average over the last three. */
  get fps() {
    const from = performance.now() - COUNTED_MS;
    this.#drawnAt = this.#drawnAt.filter((at) => at > from);
    return (this.#drawnAt.length * 1_000) / COUNTED_MS;
  }
}
