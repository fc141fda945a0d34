import { ServiceError } from '../errors/service-error.ts';
import { LIMITS } from '../limits.ts';

const utf8 = new TextEncoder();
const SLASH = 0x2f;
const DOT = 0x2e;

/**
 * Whether bytes are a path of an entry in a workspace: relative, with no empty, `.` or `..` component, no NUL, and within
 * the limits of paths in a sandbox, whose workspace is a directory with a name of its own. Names have no encoding.
 */
export function isWorkspacePath(path: Uint8Array): boolean {
  if (path.length >= LIMITS.pathBytes || path.includes(0)) return false;
  for (let start = 0; start <= path.length; ) {
    const slash = path.indexOf(SLASH, start);
    const end = slash === -1 ? path.length : slash;
    if (!isName(path.subarray(start, end))) return false;
    start = end + 1;
  }
  return true;
}

/** Checks the decoded path of a file in a workspace. @throws ServiceError `workspace_path_invalid` */
export function checkWorkspacePath(path: string): void {
  // A string that is not well-formed UTF-16 has no UTF-8 form and cannot name a file.
  if (path.isWellFormed() && isWorkspacePath(utf8.encode(path))) return;
  throw new ServiceError('workspace_path_invalid', undefined, {
    errors: [{ path: 'path', message: 'is not an acceptable path' }],
  });
}

function isName(component: Uint8Array): boolean {
  if (component.length === 0 || component.length > LIMITS.pathComponentBytes) return false;
  return component.length > 2 || component.some((byte) => byte !== DOT);
}
