/** A worker with thousands of sandboxes reports all of them at once. */
export const WORKER_BODY_BYTES = 16 * 1024 * 1024;
/** The frames of a turn up to the history that is kept, and a conversation; as JSON in JSON they may double. */
export const TURN_BODY_BYTES = 64 * 1024 * 1024;
