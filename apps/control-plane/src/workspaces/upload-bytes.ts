/** Uploads of the largest size that may be pending, however small the quota is. */
const LEAST_UPLOADS = 10;

/** What uploads may have, in bytes. */
export interface UploadBytes {
  /** One upload. */
  readonly uploadBytes: number;
  /**
   * All uploads of a tenant that are not files yet, each counted with the most that it may have. The contents of replaced
   * files, which are kept for an hour, may have as much.
   */
  readonly pendingBytes: number;
}

/** The limits of uploads, from the settings. */
export function uploadBytesOf(limits: {
  readonly uploadBytes: number;
  readonly workspaceBytes: number;
}): UploadBytes {
  const { uploadBytes, workspaceBytes } = limits;
  return { uploadBytes, pendingBytes: Math.max(workspaceBytes, LEAST_UPLOADS * uploadBytes) };
}
