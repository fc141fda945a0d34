import { link, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn } from '../image-store.ts';
import { ImageRefusedError } from './image-refused.ts';
import { fileDigest, type ImageFile, localManifest, MANIFEST_FILE } from './manifest.ts';

/**
 * The files of the images on this machine that came from the store, by their digests. Images that are based on each other
 * share files, which are fetched only once.
 */
export class LocalFiles {
  readonly #paths: ReadonlyMap<string, string>;

  private constructor(paths: ReadonlyMap<string, string>) {
    this.#paths = paths;
  }

  static async read(imageDir: string): Promise<LocalFiles> {
    const paths = new Map<string, string>();
    for (const template of await namesIn(imageDir)) {
      for (const image of await namesIn(join(imageDir, template))) {
        const directory = join(imageDir, template, image);
        for (const file of await filesOf(directory)) {
          paths.set(fileDigest(file), join(directory, file.name));
        }
      }
    }
    return new LocalFiles(paths);
  }

  /** Links a file with the same content to a path. False if there is none. */
  async link(file: ImageFile, path: string): Promise<boolean> {
    const same = this.#paths.get(fileDigest(file));
    if (same === undefined) return false;
    try {
      // What an interrupted fetch may have left.
      await rm(path, { force: true });
      await link(same, path);
      return true;
    } catch (error) {
      // Pruned meanwhile.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      throw error;
    }
  }
}

async function filesOf(directory: string): Promise<readonly ImageFile[]> {
  try {
    return localManifest(await readFile(join(directory, MANIFEST_FILE))).files;
  } catch (error) {
    // An image that was built here, or was just removed.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    // One that another version of svc fetched. Its files are fetched again.
    if (error instanceof ImageRefusedError) return [];
    throw error;
  }
}
