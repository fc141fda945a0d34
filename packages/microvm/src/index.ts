/**
 * Micro-VMs on one machine: images, snapshots, and VMs restored from them. Each VM is confined and has a network
 * of its own and an open SSH connection. This package knows nothing of tenants or HTTP.
 *
 * - `vmm/`        the driver interface for virtual machine monitors, and the QEMU driver
 * - `jail/`       confines a VM process: file system, user, resource limits
 * - `network/`    connects guests to the internet and isolates them from everything else
 * - `guest/`      identity, commands, files and the agent runtime inside a guest
 * - `image/`      recipes, images and snapshots; `image/build/` builds them, `image/distribution/` signs, pushes and pulls images
 * - `resources/`  the resources of the machine that VMs use
 * - `vm/`         the life of one VM: restore, adopt, destroy
 */
export {
  GuestTree,
  type MicrovmTree,
  TREE_BATCH,
} from './guest/tree/guest-tree.ts';
export type {
  GuestTreeOptions,
  TreeContent,
  TreeEntry,
  TreeKind,
  TreeListing,
  TreeListRequest,
  TreePiece,
  TreeRange,
  TreeRangeStatus,
  TreeRefusal,
  TreeWrite,
} from './guest/tree/tree-entry.ts';
export { buildImage } from './image/build/build-image.ts';
export type { BuildImageOptions } from './image/build/build-options.ts';
export { packageSources } from './image/build/debian-mirror.ts';
export {
  ImageNotStoredError,
  ImageRefusedError,
} from './image/distribution/image-refused.ts';
export {
  BlobGoneError,
  type ImageSource,
  type ImageStoreOptions,
  type ManifestLocation,
} from './image/distribution/image-source.ts';
export type { ImageKey } from './image/distribution/manifest.ts';
export {
  type BlobState,
  type ImageSink,
  type PublishedImage,
  type PushedImage,
  type PushImageOptions,
  pushImage,
  type StoredImageContent,
} from './image/distribution/push-image.ts';
export {
  createImageSigningKey,
  publicKeyText,
  readImageSigningKey,
} from './image/distribution/signing-keys.ts';
export { type ImageInfo, listImages } from './image/image-info.ts';
export { type PruneOptions, pruneImages, removeStored } from './image/storage/prune.ts';
export { listStored, type StoredItem, type StoredItems } from './image/storage/stored-item.ts';
export type {
  Microvm,
  MicrovmDownload,
  MicrovmExecRequest,
  MicrovmExecResult,
  OutputStream,
  PersonalizeOptions,
} from './microvm.ts';
export { MicrovmError, type MicrovmErrorCode } from './microvm-error.ts';
export type { MicrovmHost, PrepareShapeOptions, RestoreRequest } from './microvm-host.ts';
export { detachMountsBelow, diagnoseHost, type NetworkFinding } from './network/index.ts';
export { type OpenMicrovmHostOptions, openMicrovmHost } from './open-host.ts';
export { removeAbandoned } from './resources/remove-abandoned.ts';
export type { VmShape } from './vm-shape.ts';
