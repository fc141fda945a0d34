/** Sandboxes that one account may have at once in the shared service: few, so that a test can reach the limit. */
export const SANDBOX_LIMIT = 8;
