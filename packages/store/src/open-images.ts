import { connect } from './connect.ts';
import { REQUEST_DEADLINES } from './pool.ts';
import { ImageRepository } from './repositories/images.ts';

/** The stored images in a database, until it is disposed of. */
export interface OpenImages extends AsyncDisposable {
  readonly images: ImageRepository;
}

/** Opens the stored images in a database that the service may be using. Nothing is migrated. */
export function openImages(url: string): OpenImages {
  const db = connect(url, REQUEST_DEADLINES);
  return { images: new ImageRepository(db), [Symbol.asyncDispose]: () => db.destroy() };
}
