/** The sandbox record of list and get, and the responses built from it. */

import { type Static, Type } from 'typebox';
import { AGENT_STATUSES, AGENTS } from '../agents.ts';
import { SandboxId } from '../ids.ts';
import { LIMITS } from '../limits.ts';
import { FreeObject, Timestamp } from '../schema.ts';
import { END_REASONS, SANDBOX_STATES } from '../states.ts';

export const SandboxRecord = Type.Object(
  {
    vm_id: SandboxId,
    state: Type.Enum([...SANDBOX_STATES]),
    template: Type.String(),
    host_port: Type.Optional(Type.Integer()),
    endpoint: Type.Optional(Type.String()),
    vcpu: Type.Integer({ description: 'Virtual CPUs.' }),
    cpu_fraction: Type.Number({ description: 'Share of a core per virtual CPU.' }),
    memory_mib: Type.Integer(),
    disk_mib: Type.Integer(),
    rootfs: Type.Optional(Type.String({ description: 'Image file name.' })),
    idle_timeout_seconds: Type.Integer(),
    max_lifetime_seconds: Type.Integer(),
    metadata: FreeObject,
    created_at: Timestamp,
    running_at: Type.Optional(Timestamp),
    last_seen_at: Type.Optional({
      ...Timestamp,
      description: 'When the worker of a live sandbox was last heard of.',
    }),
    ended_at: Type.Optional(Timestamp),
    end_reason: Type.Optional(Type.Enum([...END_REASONS])),
    agent: Type.Optional(Type.Enum([...AGENTS])),
    agent_status: Type.Optional(Type.Enum([...AGENT_STATUSES])),
    agent_exit_code: Type.Optional(Type.Integer()),
  },
  { title: 'Sandbox' },
);
export type SandboxRecord = Static<typeof SandboxRecord>;

/** Without parameters, a list has everything. With one of them it has a page, in the order of the ids. */
export const ListSandboxesQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.pageMax, description: 'Most records of a page.' }),
  ),
  after: Type.Optional(
    Type.String({
      pattern: '^[\\x21-\\x7e]{1,64}$',
      description:
        'The last id of the page before. The `Link` header has the address of the next page.',
    }),
  ),
});
export type ListSandboxesQuery = Static<typeof ListSandboxesQuery>;

/** An array, or an object with `partial: true` when a worker could not be reached. */
export const ListSandboxesResponse = Type.Union([
  Type.Array(SandboxRecord),
  Type.Object({ sandboxes: Type.Array(SandboxRecord), partial: Type.Literal(true) }),
]);
export type ListSandboxesResponse = Static<typeof ListSandboxesResponse>;

export const DeleteSandboxResponse = Type.Object({
  vm_id: SandboxId,
  state: Type.Literal('destroyed'),
});
export type DeleteSandboxResponse = Static<typeof DeleteSandboxResponse>;

/** Path parameters of every route below `/v1/sandboxes/{id}`. A malformed id is 404 like any unknown one, never 400. */
export const SandboxParams = Type.Object({ id: SandboxId });
export type SandboxParams = Static<typeof SandboxParams>;
