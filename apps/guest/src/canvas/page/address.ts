import { pathToFileURL } from 'node:url';

/**
 * The origin of a page that is read from a file. The DOM library cannot send requests from file: addresses, whose origin is
 * `null`; nothing answers under this name outside of a page.
 */
const ORIGIN = 'http://page.invalid';

/** The address in its window of a page that is read from this file. */
export function addressOf(file: string): URL {
  return new URL(pathToFileURL(file).pathname, ORIGIN);
}

/** The address from which to read what a page names: that of a file if it lies below the page's origin. */
export function sourceOf(url: URL): URL {
  return url.origin === ORIGIN ? new URL(`file://${url.pathname}`) : url;
}
