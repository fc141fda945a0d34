/** `/v1/workspaces`: persistent files of an account, in scopes of an app and a capability set. */

import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { Timestamp } from '../schema.ts';
import { ScopeId } from '../scope-id.ts';

const Bytes = Type.Integer({ minimum: 0 });

export const WorkspaceParams = Type.Object({ app_id: ScopeId, capset_id: ScopeId });

/** The wildcard is the path of the file, relative to the workspace. `checkWorkspacePath` applies its rules. */
export const WorkspaceFileParams = Type.Object({
  app_id: ScopeId,
  capset_id: ScopeId,
  '*': Type.String({
    description: 'Path relative to the workspace, with slashes, each name percent-encoded.',
  }),
});

export const WorkspaceFilesQuery = Type.Object({
  prefix: Type.Optional(
    Type.String({ maxLength: LIMITS.pathBytes, description: 'Lists only paths that start so.' }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.pageMax, default: LIMITS.pageDefault }),
  ),
  token: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9_-]{1,5462}$',
      description: '`next_token` of the page before.',
    }),
  ),
});
export type WorkspaceFilesQuery = Static<typeof WorkspaceFilesQuery>;

const pathFields = {
  path_base64: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9_-]{2,5462}$',
      description:
        'The bytes of the path in base64url, for one that is not UTF-8. The path in the URL is empty then.',
    }),
  ),
};

export const WorkspaceFileQuery = Type.Object(pathFields);
export type WorkspaceFileQuery = Static<typeof WorkspaceFileQuery>;

export const WorkspaceUploadQuery = Type.Object({
  ...pathFields,
  size: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'The size of the upload in bytes. With it, the URL accepts no other size.',
    }),
  ),
});
export type WorkspaceUploadQuery = Static<typeof WorkspaceUploadQuery>;

export const Workspace = Type.Object(
  { app_id: Type.String(), capset_id: Type.String(), size_bytes: Bytes },
  { title: 'Workspace' },
);
export type Workspace = Static<typeof Workspace>;

export const ListWorkspacesResponse = Type.Object({ workspaces: Type.Array(Workspace) });
export type ListWorkspacesResponse = Static<typeof ListWorkspacesResponse>;

export const WorkspaceFile = Type.Object(
  {
    path: Type.String({ description: 'Relative to the workspace.' }),
    path_base64: Type.Optional(
      Type.String({
        description:
          'The bytes of the path in base64url, if it is not UTF-8. `path` has replacement characters then.',
      }),
    ),
    size: Bytes,
    modified: Timestamp,
  },
  { title: 'WorkspaceFile' },
);
export type WorkspaceFile = Static<typeof WorkspaceFile>;

export const ListWorkspaceFilesResponse = Type.Object({
  files: Type.Array(WorkspaceFile),
  next_token: Type.Optional(Type.String({ description: 'Absent on the last page.' })),
});
export type ListWorkspaceFilesResponse = Static<typeof ListWorkspaceFilesResponse>;

export const PresignedUrl = Type.Object(
  {
    url: Type.String({ description: 'Usable by anyone who has it, until it expires.' }),
    expires_in: Type.Integer({ description: 'In seconds.' }),
  },
  { title: 'PresignedUrl' },
);
export type PresignedUrl = Static<typeof PresignedUrl>;

export const WorkspaceDeletedResponse = Type.Object({ status: Type.Literal('deleted') });
export type WorkspaceDeletedResponse = Static<typeof WorkspaceDeletedResponse>;

export const WorkspaceUsage = Type.Object(
  { total_size_mib: Type.Number({ minimum: 0 }), file_count: Type.Integer({ minimum: 0 }) },
  { title: 'WorkspaceUsage' },
);
export type WorkspaceUsage = Static<typeof WorkspaceUsage>;
