import { ServiceError } from '../errors/service-error.ts';
import { pathProblem } from '../paths.ts';

/**
 * Checks the decoded path of a file in a workspace: relative, with no empty, `.` or `..` component, and within the
 * limits of paths in a sandbox.
 * @throws ServiceError `workspace_path_invalid`
 */
export function checkWorkspacePath(path: string): void {
  const isName = (component: string) => !['', '.', '..'].includes(component);
  if (pathProblem(`/${path}`) === undefined && path.split('/').every(isName)) return;
  throw new ServiceError('workspace_path_invalid', undefined, {
    errors: [{ path: 'path', message: 'is not an acceptable path' }],
  });
}
