/** Structured fields of the IETF draft "RateLimit header fields for HTTP". */

interface Quota {
  readonly name: string;
  readonly most: number;
  readonly windowSeconds: number;
}

interface Left {
  readonly remaining: number;
  readonly resetSeconds: number;
}

/** `RateLimit-Policy` states the limit, `RateLimit` the remaining quota and the time until its reset. */
export function rateLimitHeaders(quota: Quota, left: Left): Record<string, string> {
  return {
    'ratelimit-policy': `"${quota.name}";q=${quota.most};w=${quota.windowSeconds}`,
    ratelimit: `"${quota.name}";r=${left.remaining};t=${left.resetSeconds}`,
  };
}
