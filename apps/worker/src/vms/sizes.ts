import type { ImageInfo } from '@svc/microvm';

/** What a VM takes of its machine. */
export interface Size {
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly diskMib: number;
}

/** Sizes that a request may name; what it leaves out is the image's. */
export interface SizeWish {
  readonly vcpu?: number | undefined;
  readonly memory_mib?: number | undefined;
  readonly disk_mib?: number | undefined;
}

/** The size that a wish comes to on this image, whose disk can grow but not shrink. */
export function sizeOf(wish: SizeWish, image: ImageInfo): Size {
  return {
    vcpu: wish.vcpu ?? image.vcpu,
    memoryMib: wish.memory_mib ?? image.memoryMib,
    diskMib: Math.max(wish.disk_mib ?? image.diskMib, image.diskMib),
  };
}

/** Whether the size is the one the image was frozen at: only such sandboxes come from the pool. */
export function isImageSize(size: Size, image: ImageInfo): boolean {
  return (
    size.vcpu === image.vcpu && size.memoryMib === image.memoryMib && size.diskMib === image.diskMib
  );
}
