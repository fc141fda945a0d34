const START = 0xffd8;
/** Markers of frames: SOF0 to SOF15, without DHT, JPG and DAC, which lie between them. */
const isFrame = (marker: number) =>
  marker >= 0xffc0 && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker);

/**
 * The size that the header of a JPEG states, which decides how much memory a decoder needs. Undefined for anything
 * else. https://www.w3.org/Graphics/JPEG/itu-t81.pdf, B.1.1.3 and B.2.2
 */
export function jpegSize(
  image: Uint8Array,
): { readonly width: number; readonly height: number } | undefined {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength);
  if (view.byteLength < 4 || view.getUint16(0) !== START) return undefined;
  for (let at = 2; at + 9 <= view.byteLength; ) {
    const marker = view.getUint16(at);
    if (isFrame(marker)) return { height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
    // Each segment before the frame has a length, which includes its own two bytes.
    const length = view.getUint16(at + 2);
    if (marker < 0xffc0 || length < 2) return undefined;
    at += 2 + length;
  }
  return undefined;
}
