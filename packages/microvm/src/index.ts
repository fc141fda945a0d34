/**
 * Micro-VMs on one machine: images, snapshots, and VMs that are restored from them, confined, with a
 * network of their own and a channel held open. Knows nothing of tenants or HTTP.
 *
 * - `vmm/`      the driver interface, and QEMU behind it
 * - `jail/`     what a VM process may see and use of the machine
 * - `network/`  what a guest may reach, and how it is reached
 * - `guest/`    identity, commands and files inside a guest
 * - `image/`    from a recipe to a frozen snapshot
 * - `vm/`       one VM's life: restore, adopt, destroy
 */
export * from './facade.ts';
export { buildImage } from './image/build-image.ts';
export type { BuildImageOptions } from './image/build-options.ts';
export { listImages } from './image/image-info.ts';
export { diagnoseHost, type NetworkFinding } from './network/index.ts';
export { type OpenMicrovmHostOptions, openMicrovmHost } from './open-host.ts';
