/** Security schemes of the document, and the requirements of routes. */
export const SECURITY_SCHEMES = {
  apiKey: { type: 'http', scheme: 'bearer', description: 'An API key.' },
  accountToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'The short-lived token of a redeemed code.',
  },
} as const;

export const BY_API_KEY: { [scheme: string]: readonly string[] }[] = [{ apiKey: [] }];
export const BY_ACCOUNT: { [scheme: string]: readonly string[] }[] = [{ accountToken: [] }];
export const BY_API_KEY_OR_ACCOUNT: { [scheme: string]: readonly string[] }[] = [
  { apiKey: [] },
  { accountToken: [] },
];
