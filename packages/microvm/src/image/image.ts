import type { VmShape } from '../vmm/vmm.ts';

/** One built image: a root disk and a kernel, and the shape its sandboxes have unless asked otherwise. */
export interface Image extends VmShape {
  readonly template: string;
  /** Short digest of the recipe. */
  readonly id: string;
  readonly diskMib: number;
  /** File name of the root disk, unique to this version. */
  readonly rootfs: string;
  readonly directory: string;
  readonly rootfsPath: string;
  readonly kernelPath: string;
  readonly initrdPath: string;
  /** Commands that run before the image is frozen, so that what they need is in memory. */
  readonly warmUp: readonly string[];
}
