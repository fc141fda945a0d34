import { ArgumentError } from './parsers.ts';

/** A workspace of the account, and a path in it; the empty path is the workspace itself. */
export interface WorkspaceLocation {
  readonly id: { readonly appId: string; readonly capsetId: string };
  readonly path: string;
}

/** Parses `app/capset` or `app/capset:path`. */
export function parseWorkspace(text: string): WorkspaceLocation {
  const [, appId, capsetId, path = ''] = /^([^/:]+)\/([^/:]+)(?::\/?(.*))?$/s.exec(text) ?? [];
  if (appId !== undefined && capsetId !== undefined) return { id: { appId, capsetId }, path };
  throw new ArgumentError(
    `"${text}" is not a workspace`,
    'write app/capset, and :path for a file in it',
    'my-app/default:reports/may.csv',
  );
}

/** Parses `app/capset`. */
export function parseWorkspaceId(text: string): WorkspaceLocation['id'] {
  const { id, path } = parseWorkspace(text);
  if (path === '') return id;
  throw new ArgumentError(
    `"${text}" names a file`,
    'write a workspace without a path',
    'my-app/default',
  );
}

/** Parses `app/capset:path`. */
export function parseWorkspaceFile(text: string): WorkspaceLocation {
  const location = parseWorkspace(text);
  if (location.path !== '') return location;
  throw new ArgumentError(
    `"${text}" names no file`,
    'write the path of the file after a colon',
    'my-app/default:reports/may.csv',
  );
}
