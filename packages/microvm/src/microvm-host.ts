import type { SandboxSize } from '@svc/contract';
import type { ImageInfo } from './image/image-info.ts';
import type { Microvm } from './microvm.ts';
import type { VmShape } from './vm-shape.ts';

/** The VM to restore. */
export interface RestoreRequest {
  readonly id: string;
  readonly template: string;
  /** The guest's initial host name. Default: derived from `id`. */
  readonly hostname?: string;
  /** Default: the image's own. A size for which no snapshot exists yet takes several seconds longer. */
  readonly size?: SandboxSize;
  /** Who waits for it, see `PersonalizeOptions`. */
  readonly owner?: string;
}

export interface PrepareShapeOptions {
  /** At a lower priority than the VMs. Default: false. */
  readonly background?: boolean;
}

/** The micro-VMs of one worker process on one machine. */
export interface MicrovmHost {
  readonly accelerator: 'kvm' | 'tcg';
  /** The address of this machine at which it serves its guests: every guest reaches its gateway ports there. */
  readonly serviceAddress: string;
  images(): Promise<ImageInfo[]>;
  /** Restores a VM, gives it an identity and connects to it. Undoes everything when `signal` aborts. */
  restore(request: RestoreRequest, signal: AbortSignal): Promise<Microvm>;
  /** Whether the snapshot for a shape exists, so that a restore in it is fast. */
  hasShape(template: string, shape: VmShape): Promise<boolean>;
  /**
   * Takes the snapshot for another shape than the image's own, so that restores in it are fast. Takes as long as a boot
   * and a warm-up. Does nothing if the snapshot exists.
   */
  prepareShape(
    template: string,
    shape: VmShape,
    options: PrepareShapeOptions,
    signal: AbortSignal,
  ): Promise<void>;
  /** After a restart: takes over the VMs of the data directory that are still running and removes the remains of others. */
  adopt(signal: AbortSignal): Promise<Microvm[]>;
  memoryAvailableMib(): number;
  diskAvailableMib(): Promise<number>;
  /** What the VMs hold of the same disk, also those of an earlier process. */
  diskUsedMib(): Promise<number>;
  close(options: { readonly keepVms: boolean }): Promise<void>;
}
