/** A report covers all sandboxes of a worker, possibly thousands. */
export const WORKER_BODY_BYTES = 16 * 1024 * 1024;
/** A turn has frames up to the size of the kept history, and a conversation. JSON within JSON may double in size. */
export const TURN_BODY_BYTES = 64 * 1024 * 1024;
/** A page of changes has up to 65,536 extents of one file, or long paths. */
export const CHANGES_BODY_BYTES = 16 * 1024 * 1024;
