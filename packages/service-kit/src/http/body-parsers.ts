import { isUtf8 } from 'node:buffer';
import { ServiceError } from '@svc/contract';
import type { FastifyInstance } from 'fastify';
import { isTooComplex, MAX_JSON_DEPTH } from './json-complexity.ts';

const NOT_UTF8 = 'Encode the body as UTF-8.';
const TOO_DEEP = `Nest objects and lists at most ${MAX_JSON_DEPTH} levels deep.`;

/**
 * Accepts only JSON bodies; an empty one counts as absent. JSON with prototype-poisoning keys or excessive nesting is
 * invalid, and so are other bytes than UTF-8, whose replacement would change what was sent.
 */
export function acceptJsonOnly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    (request, bytes, done) => {
      if (!isUtf8(bytes)) {
        done(new ServiceError('invalid_json', NOT_UTF8));
        return;
      }
      const body = bytes.toString();
      if (body === '') done(null, undefined);
      else if (isTooComplex(body)) done(new ServiceError('invalid_json', TOO_DEEP));
      else parse(request, body, done);
    },
  );
}

/** Makes the routes of a plugin scope accept HTML forms instead of JSON. Of a repeated field, the last one counts. */
export function acceptFormOnly(
  app: Pick<FastifyInstance, 'removeAllContentTypeParsers' | 'addContentTypeParser'>,
): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(body))),
  );
}

/** Makes the routes of a plugin scope accept JSON as the bytes that were sent, for signatures over them. */
export function acceptRawJsonOnly(
  app: Pick<FastifyInstance, 'removeAllContentTypeParsers' | 'addContentTypeParser'>,
): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    (_request, body, done) => done(null, body),
  );
}

/**
 * Makes the routes of a plugin scope accept bodies of one media type, of any length, as an unread stream. It removes
 * all other parsers, so call it in a separate scope.
 */
export function acceptStreamOnly(
  app: Pick<FastifyInstance, 'removeAllContentTypeParsers' | 'addContentTypeParser'>,
  mediaType: string,
): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(mediaType, (_request, payload, done) => done(null, payload));
}
