import type { AgentBuild } from './agent-builds.ts';
import type { Image } from './image.ts';
import { readImages } from './image-store.ts';
import { readRecipe, recipeNames } from './recipe.ts';

/** An image that VMs can be restored from, with the sizes of its snapshot. */
export interface ImageInfo {
  readonly template: string;
  readonly id: string;
  /** File name of the root disk. */
  readonly rootfs: string;
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly diskMib: number;
  /** The agents that it carries. */
  readonly builds: readonly AgentBuild[];
  /** Commands to run in its idle VMs, where the processor is emulated. */
  readonly idleWarmUp: readonly string[];
  /** False while the image is being built, and when it cannot be used. */
  readonly ready: boolean;
}

export function describeImage(image: Image, ready: boolean): ImageInfo {
  const { template, id, rootfs, vcpu, memoryMib, diskMib, builds, idleWarmUp } = image;
  return { template, id, rootfs, vcpu, memoryMib, diskMib, builds, idleWarmUp, ready };
}

/** The images built on this machine. `ready` marks those of the current recipes. */
export async function listImages(imageDir: string): Promise<ImageInfo[]> {
  const current = new Set<string>();
  for (const template of await recipeNames()) current.add((await readRecipe(template)).id);
  const images = await readImages(imageDir);
  return images.map((image) => describeImage(image, current.has(image.id)));
}
