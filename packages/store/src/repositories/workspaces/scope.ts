/** What identifies a workspace. */
export interface WorkspaceScope {
  readonly tenantId: string;
  readonly appId: string;
  readonly capsetId: string;
}

/** A workspace, with the sums of its files. */
export interface Workspace {
  readonly workspaceId: string;
  readonly appId: string;
  readonly capsetId: string;
  readonly sizeBytes: number;
  readonly fileCount: number;
}

/** A file of a workspace. `path` is relative to it. */
export interface WorkspaceFile {
  readonly path: Buffer;
  readonly sizeBytes: number;
  readonly modifiedAt: Date;
  readonly objectKey: string;
}
