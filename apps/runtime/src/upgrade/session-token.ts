const TOKEN = /^[A-Za-z0-9._-]{1,4096}$/;

/**
 * The session token of an upgrade, from the Authorization header or, for browsers, from the query. Undefined when there
 * is none, when the query has several, or when it has another form than a JWT.
 */
export function tokenOf(
  authorization: string | undefined,
  query: URLSearchParams,
): string | undefined {
  const token = authorization === undefined ? fromQuery(query) : fromHeader(authorization);
  return token !== undefined && TOKEN.test(token) ? token : undefined;
}

function fromHeader(authorization: string): string | undefined {
  return /^Bearer (.+)$/i.exec(authorization)?.[1];
}

function fromQuery(query: URLSearchParams): string | undefined {
  const tokens = query.getAll('token');
  return tokens.length === 1 ? tokens[0] : undefined;
}
