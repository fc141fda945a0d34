import { randomUUID } from 'node:crypto';
import { uuidv7 } from 'uuidv7';

/** All objects of workspaces have keys with this prefix, and nothing else has. */
export const WORKSPACE_OBJECTS = 'workspaces/';

/** The workspace that objects belong to. */
export interface WorkspaceOwner {
  readonly tenantId: string;
  readonly workspaceId: string;
}

/** Prefix of the objects that customers upload. They are copied when they become files. */
export function uploadsPrefix({ tenantId, workspaceId }: WorkspaceOwner): string {
  return `${WORKSPACE_OBJECTS}${tenantId}/${workspaceId}/uploads/`;
}

/** Key of the object that an upload makes. */
export function uploadKey(owner: WorkspaceOwner, uploadId: string): string {
  return uploadsPrefix(owner) + uploadId;
}

/** The id of an upload, from the key of its object. */
export function uploadIdOf(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1);
}

/** Whether an object is one that a customer uploads. */
export function isUploadKey(key: string): boolean {
  return key.startsWith(WORKSPACE_OBJECTS) && key.split('/')[3] === 'uploads';
}

/** Key of a new object with the content of a file. No URL for writing exists for it. */
export function newFileKey({ tenantId, workspaceId }: WorkspaceOwner): string {
  return `${WORKSPACE_OBJECTS}${tenantId}/${workspaceId}/files/${randomUUID()}`;
}

/** Key of a new object with a chunk of files. */
export function newChunkKey({ tenantId, workspaceId }: WorkspaceOwner): string {
  return `${WORKSPACE_OBJECTS}${tenantId}/${workspaceId}/chunks/${uuidv7()}`;
}
