import type { Route } from '../../services.ts';
import { getObject } from './get.ts';
import { getWorkspaceContent } from './get-workspace-content.ts';
import { putObject } from './put.ts';

/** The presigned URLs that the control plane serves. They carry their own authorization. */
export const objectRoutes: readonly Route[] = [getObject, putObject, getWorkspaceContent];
