/** A worker with thousands of sandboxes reports all of them at once. */
export const WORKER_BODY_BYTES = 16 * 1024 * 1024;
