import { run } from '../../network/command.ts';

/** Makes an empty copy-on-write disk over a raw image, as large as the image. */
export async function createOverlay(path: string, base: string): Promise<void> {
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', base, path]);
}
