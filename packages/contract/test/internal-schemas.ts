import type { TSchema } from 'typebox';
import * as contract from '../src/index.ts';
import * as internal from '../src/internal/index.ts';

/** The public schemas that components use among themselves. */
const { CancelRequest, CancelResponse, ExecRequest, Problem, UploadResponse } = contract;

const REMARKS = new Set([
  ...['description', 'examples', 'default'],
  ...['x-error-code', 'x-optional-body', 'x-max-bytes'],
]);

/** Every message between the components of the service, by name, as plain JSON. */
export function internalSchemas(): Record<string, Schema> {
  const all = { ...internal, CancelRequest, CancelResponse, ExecRequest, Problem, UploadResponse };
  const schemas = Object.entries(all).filter(([, value]) => isSchema(value));
  return JSON.parse(JSON.stringify(Object.fromEntries(schemas), withoutRemarks));
}

/** A field of this name has a schema as its value. */
function withoutRemarks(key: string, value: unknown): unknown {
  return REMARKS.has(key) && !isSchema(value) ? undefined : value;
}

/** The part of JSON Schema that the contract uses. */
export interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly 'x-known'?: readonly unknown[];
}

function isSchema(value: unknown): value is TSchema {
  if (typeof value !== 'object' || value === null) return false;
  return 'type' in value || 'anyOf' in value;
}
