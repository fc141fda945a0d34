import { Type } from 'typebox';

/** Name of an app or of a capability set, as one part of a workspace's name: it has no slashes and no leading dot. */
export const ScopeId = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' });
