const MAX_CHARS = 4096;

/**
 * The session token of an upgrade, from the Authorization header or, for browsers, from the query. Undefined when there
 * is none, or when the query has several.
 */
export function tokenOf(
  authorization: string | undefined,
  query: URLSearchParams,
): string | undefined {
  const token = authorization === undefined ? fromQuery(query) : fromHeader(authorization);
  return token === undefined || token.length > MAX_CHARS ? undefined : token;
}

function fromHeader(authorization: string): string | undefined {
  return /^Bearer ([A-Za-z0-9._-]+)$/i.exec(authorization)?.[1];
}

function fromQuery(query: URLSearchParams): string | undefined {
  const tokens = query.getAll('token');
  return tokens.length === 1 ? tokens[0] : undefined;
}
