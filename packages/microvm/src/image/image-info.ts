import type { ImageInfo } from '../facade.ts';
import type { Image } from './image.ts';
import { readImages } from './image-store.ts';
import { readRecipe, recipeNames } from './recipe.ts';

export function describeImage(image: Image, ready: boolean): ImageInfo {
  const { template, id, rootfs, vcpu, memoryMib, diskMib } = image;
  return { template, id, rootfs, vcpu, memoryMib, diskMib, ready };
}

/** The built images of this machine. `ready` marks those of the current recipe. */
export async function listImages(imageDir: string): Promise<ImageInfo[]> {
  const current = new Set<string>();
  for (const template of await recipeNames()) current.add((await readRecipe(template)).id);
  const images = await readImages(imageDir);
  return images.map((image) => describeImage(image, current.has(image.id)));
}
