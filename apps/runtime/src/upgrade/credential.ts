const LONGEST = 4096;

/**
 * The session token of an upgrade: of the Authorization header, else of the query, for browsers. Undefined when there
 * is none, or more than one in the query.
 */
export function tokenOf(
  authorization: string | undefined,
  query: URLSearchParams,
): string | undefined {
  const token = authorization === undefined ? fromQuery(query) : fromHeader(authorization);
  return token === undefined || token.length > LONGEST ? undefined : token;
}

function fromHeader(authorization: string): string | undefined {
  return /^Bearer ([A-Za-z0-9._-]+)$/i.exec(authorization)?.[1];
}

function fromQuery(query: URLSearchParams): string | undefined {
  const tokens = query.getAll('token');
  return tokens.length === 1 ? tokens[0] : undefined;
}
