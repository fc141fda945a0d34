import type { SandboxSize } from '@svc/contract';
import type { ImageInfo } from '@svc/microvm';

/** The share of a machine that a VM uses. */
export interface Size {
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly diskMib: number;
}

/** The size of a VM of this image, whose disk can grow but not shrink. */
export function sizeOf(placed: SandboxSize, image: ImageInfo): Size {
  return {
    vcpu: placed.vcpu ?? image.vcpu,
    memoryMib: placed.memory_mib ?? image.memoryMib,
    diskMib: Math.max(placed.disk_mib ?? image.diskMib, image.diskMib),
  };
}

/** Whether an idle VM of this image has the requested size. */
export function isImageSize(placed: SandboxSize, image: ImageInfo): boolean {
  const { vcpu: _vcpu, memory_mib: _memory, disk_mib: _disk, ...others } = placed;
  const size = sizeOf(placed, image);
  return (
    size.vcpu === image.vcpu &&
    size.memoryMib === image.memoryMib &&
    size.diskMib === image.diskMib &&
    // No image sets any other size, so no idle VM can have it.
    Object.keys(others).length === 0
  );
}
