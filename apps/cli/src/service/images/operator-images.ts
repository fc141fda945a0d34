import type { Config } from '@svc/config';
import { type ImageRepository, openImages } from '@svc/store';
import { withDatabase } from '../operator-database.ts';

/** Runs an operation on the stored images in the database of the configured service. @throws CliError `no_database` */
export function withImages<T>(
  config: Config,
  operation: (images: ImageRepository) => Promise<T>,
): Promise<T> {
  return withDatabase(config, async (url) => {
    await using opened = openImages(url);
    return await operation(opened.images);
  });
}
