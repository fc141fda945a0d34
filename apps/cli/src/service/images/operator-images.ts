import type { Config } from '@svc/config';
import { type ImageRepository, openImages } from '@svc/store';
import { databaseUrl } from '../operator-database.ts';

/** Runs an operation on the stored images in the database of the configured service. @throws CliError `no_database` */
export async function withImages<T>(
  config: Config,
  operation: (images: ImageRepository) => Promise<T>,
): Promise<T> {
  await using cleanUp = new AsyncDisposableStack();
  const url = await databaseUrl(config, cleanUp);
  await using opened = openImages(url);
  return await operation(opened.images);
}
