import { ERROR_CODE_KEYWORD, type ErrorCode, isErrorCode } from '@svc/contract';

/**
 * The error code that the schema declares for the value at `path`, a JSON pointer: that of the innermost schema on
 * the way there. The walk ends at the first part that the schema does not describe.
 */
export function errorCodeAt(schema: unknown, path: string): ErrorCode | undefined {
  let current: unknown = schema;
  let code = codeOf(current);
  for (const part of path.split('/').slice(1)) {
    current = childOf(current, unescapeToken(part));
    if (current === undefined) break;
    code = codeOf(current) ?? code;
  }
  return code;
}

function codeOf(schema: unknown): ErrorCode | undefined {
  const code = member(schema, ERROR_CODE_KEYWORD);
  return isErrorCode(code) ? code : undefined;
}

function childOf(schema: unknown, name: string): unknown {
  const property = member(member(schema, 'properties'), name);
  if (property !== undefined) return property;
  return /^\d+$/.test(name) ? member(schema, 'items') : member(schema, 'additionalProperties');
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Record<string, unknown>)[name];
}

function unescapeToken(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
