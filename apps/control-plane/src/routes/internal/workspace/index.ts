import type { Route } from '../../../services.ts';
import { stageWorkspaceChanges } from './changes.ts';
import { workspaceChunkDownloads } from './chunk-downloads.ts';
import { workspaceChunkSecret } from './chunk-secret.ts';
import { workspaceChunkUploads } from './chunk-uploads.ts';
import { workspaceChunksMissing } from './chunks-missing.ts';
import { workspaceChunksUploaded } from './chunks-uploaded.ts';
import { commitWorkspaceFlush } from './commit.ts';
import { workspaceEntries } from './entries.ts';
import { workspaceObjectDownloads } from './object-downloads.ts';

/** The workspaces of sandboxes, for their workers. */
export const mountedWorkspaceRoutes: readonly Route[] = [
  workspaceChunkSecret,
  workspaceChunksMissing,
  workspaceChunkUploads,
  workspaceChunksUploaded,
  workspaceChunkDownloads,
  workspaceEntries,
  workspaceObjectDownloads,
  stageWorkspaceChanges,
  commitWorkspaceFlush,
];
