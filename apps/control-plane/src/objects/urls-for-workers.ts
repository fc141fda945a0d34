import type { Objects } from './open-objects.ts';

/** Validity of a URL for one upload or download by a worker, with a wait for others before it. */
export const WORKER_URL_SECONDS = 300;

/** A presigned URL as a worker can use it: workers reach the control plane at an address whose certificate they know. */
export function urlForWorkers({ urls }: Pick<Objects, 'urls'>, url: string): string {
  if (urls === undefined) return url;
  const { pathname, search } = new URL(url);
  return pathname + search;
}
