import type { DiskImage } from '../disk-image.ts';
import type { VmShape } from '../vm-shape.ts';
import type { AgentBuild } from './agent-builds.ts';

/** A built image: a root disk, a kernel, and the default shape of its sandboxes. */
export interface Image extends VmShape {
  readonly template: string;
  /** Short digest of the recipe. */
  readonly id: string;
  readonly diskMib: number;
  readonly builds: readonly AgentBuild[];
  /** File name of the root disk, unique to this version. */
  readonly rootfs: string;
  readonly directory: string;
  /** Paths of the files that make up the root disk, see `DiskImage`. */
  readonly disk: DiskImage;
  readonly kernelPath: string;
  readonly initrdPath: string;
  /** Commands to run before the snapshot is taken, so that everything they load is in memory. */
  readonly warmUp: readonly string[];
  /** Commands to run in each idle VM of a machine without KVM, so that the code that they run is translated. */
  readonly idleWarmUp: readonly string[];
}
