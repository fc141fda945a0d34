/** The fields of the IETF draft "RateLimit header fields for HTTP", as structured fields. */

interface Quota {
  readonly name: string;
  readonly most: number;
  readonly windowSeconds: number;
}

interface Left {
  readonly remaining: number;
  readonly resetSeconds: number;
}

/** `RateLimit-Policy` says what the limit is, `RateLimit` what is left of it and when it is whole again. */
export function rateLimitHeaders(quota: Quota, left: Left): Record<string, string> {
  return {
    'ratelimit-policy': `"${quota.name}";q=${quota.most};w=${quota.windowSeconds}`,
    ratelimit: `"${quota.name}";r=${left.remaining};t=${left.resetSeconds}`,
  };
}
