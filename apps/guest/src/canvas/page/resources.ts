import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { IFetchInterceptor } from 'happy-dom';
import { readResource } from '../drawing/index.ts';
import { sourceOf } from './address.ts';
import type { Loading } from './loading.ts';

/** Lets a page load scripts and data from files. */
export function localFiles(loading: Loading): IFetchInterceptor {
  return {
    async beforeAsyncRequest({ request, window }) {
      const source = sourceOf(new URL(request.url));
      if (source.protocol !== 'file:') return undefined;
      return new window.Response(await loading.track(readResource(source)));
    },
    beforeSyncRequest({ request, window }) {
      const source = sourceOf(new URL(request.url));
      if (source.protocol !== 'file:') return undefined;
      return {
        status: 200,
        statusText: 'OK',
        ok: true,
        url: request.url,
        redirected: false,
        headers: new window.Headers(),
        body: readFileSync(fileURLToPath(source)),
      };
    },
  };
}
