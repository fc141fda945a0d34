/** `/v1/audit`: the events of an account, newest first. */

import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { FreeObject, Timestamp } from '../schema.ts';

export const AUDIT_EVENTS = [
  'login_succeeded',
  'login_failed',
  'api_key_created',
  'api_key_revoked',
  'secret_created',
  'secret_rotated',
  'secret_deleted',
  'port_link_created',
  'template_not_found',
  'cross_tenant_resume_denied',
] as const;
export type AuditEvent = (typeof AUDIT_EVENTS)[number];

export const AuditQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.pageMax, default: LIMITS.pageDefault }),
  ),
  cursor: Type.Optional(
    Type.String({
      pattern: '^[1-9][0-9]{0,17}$',
      description: '`next_cursor` of the page before.',
    }),
  ),
});
export type AuditQuery = Static<typeof AuditQuery>;

export const AuditEntry = Type.Object(
  {
    id: Type.String(),
    event: Type.Enum([...AUDIT_EVENTS]),
    created_at: Timestamp,
    details: { ...FreeObject, description: 'Facts of the event; never a secret.' },
  },
  { title: 'AuditEntry' },
);
export type AuditEntry = Static<typeof AuditEntry>;

export const ListAuditResponse = Type.Object({
  entries: Type.Array(AuditEntry),
  next_cursor: Type.Optional(
    Type.String({ description: 'Cursor of the next page; absent on the last.' }),
  ),
});
export type ListAuditResponse = Static<typeof ListAuditResponse>;
