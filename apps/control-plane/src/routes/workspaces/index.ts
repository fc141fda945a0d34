import type { Route } from '../../services.ts';
import { deleteWorkspace } from './delete.ts';
import { deleteWorkspaceFile } from './delete-file.ts';
import { getWorkspaceFile } from './get-file.ts';
import { listWorkspaces } from './list.ts';
import { listWorkspaceFiles } from './list-files.ts';
import { putWorkspaceFile } from './put-file.ts';
import { workspaceUsage } from './usage.ts';

export const workspaceRoutes: readonly Route[] = [
  listWorkspaces,
  listWorkspaceFiles,
  workspaceUsage,
  deleteWorkspace,
  getWorkspaceFile,
  putWorkspaceFile,
  deleteWorkspaceFile,
];
