import { cp, mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { listImages } from '@svc/microvm';
import { writeDisk } from './root-disk.ts';
import { mustRun } from './run-step.ts';

const DISK_MIB = 12_288;

export interface CheckoutDiskOptions {
  readonly checkout: string;
  /** The image directory, with the current image of the template. */
  readonly imageDir: string;
  readonly template: string;
  /** The directory with the Debian package. */
  readonly built: string;
  /** The public key that may log in. */
  readonly publicKey: string;
  readonly work: string;
}

/**
 * Writes the disk that the machine mounts at /mnt: the checkout with its npm packages, the image without its snapshots,
 * which the machine takes itself, the Debian package, and the key.
 */
export async function writeCheckoutDisk(
  { checkout, imageDir, template, built, publicKey, work }: CheckoutDiskOptions,
  signal: AbortSignal,
): Promise<string> {
  const content = join(work, 'mnt');
  await mkdir(join(content, 'svc'), { recursive: true });
  const tracked = join(work, 'tracked');
  const list = `git -C "$1" ls-files -z --cached --others --exclude-standard >"$2"`;
  await mustRun('sh', ['-c', list, 'sh', checkout, tracked], signal);
  const copy = `tar -C "$1" --null --ignore-failed-read -T "$2" -c | tar -C "$3" -x`;
  await mustRun('sh', ['-c', copy, 'sh', checkout, tracked, join(content, 'svc')], signal);
  await link(join(checkout, 'node_modules'), join(content, 'svc/node_modules'), signal);
  const image = (await listImages(imageDir)).find((one) => one.template === template && one.ready);
  if (image === undefined) throw new Error(`the image ${template} is not built`);
  const from = join(imageDir, template, image.id);
  const to = join(content, 'images', template, image.id);
  await mkdir(to, { recursive: true });
  for (const file of await readdir(from, { withFileTypes: true })) {
    if (file.isFile()) await link(join(from, file.name), join(to, file.name), signal);
  }
  const deb = (await readdir(built)).find((name) => name.endsWith('.deb'));
  if (deb === undefined) throw new Error(`there is no Debian package in ${built}`);
  await link(join(built, deb), join(content, 'svc.deb'), signal);
  await cp(publicKey, join(content, 'authorized_keys'));
  const disk = join(dirname(content), 'checkout.ext4');
  await writeDisk(content, disk, DISK_MIB, signal);
  return disk;
}

/** Hard links where both are on one file system, copies elsewhere. */
async function link(from: string, to: string, signal: AbortSignal): Promise<void> {
  const script =
    'cp -al "$1" "$2" 2>/dev/null || { rm -rf "$2"; cp -a --sparse=always "$1" "$2"; }';
  await mustRun('sh', ['-c', script, 'sh', from, to], signal);
}
