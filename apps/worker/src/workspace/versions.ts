/** The versions of the entries that a guest has, by path in base64url. Only these may its deletions delete. */
export type Versions = Map<string, number>;
