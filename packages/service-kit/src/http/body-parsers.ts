import { ServiceError } from '@svc/contract';
import type { FastifyInstance } from 'fastify';
import { isTooDeep, MAX_JSON_DEPTH } from './json-depth.ts';

const TOO_DEEP = `Nest objects and lists at most ${MAX_JSON_DEPTH} levels deep.`;

/**
 * Only JSON is taken as a body, and an empty JSON body counts as none.
 * Keys that poison prototypes make the JSON invalid, and so does nesting without measure.
 */
export function acceptJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>(
    'application/json',
    { parseAs: 'string' },
    (request, body, done) => {
      if (body === '') done(null, undefined);
      else if (isTooDeep(body)) done(new ServiceError('invalid_json', TOO_DEEP));
      else parse(request, body, done);
    },
  );
}

/**
 * Makes the routes of this plugin scope take bodies of one media type, as the unread stream, of any length.
 * Call it in a scope of its own: it removes the parsers for everything else there.
 */
export function acceptStreamOnly(
  app: Pick<FastifyInstance, 'removeAllContentTypeParsers' | 'addContentTypeParser'>,
  mediaType: string,
): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(mediaType, (_request, payload, done) => done(null, payload));
}
