import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';

/** Fields of a create request that set the size of the sandbox. Each is optional; the template provides the default. */
export const sizeFields = {
  vcpu: Type.Optional(
    Type.Integer({
      minimum: LIMITS.vcpuMin,
      maximum: LIMITS.vcpuMax,
      description: 'Virtual CPUs. Default: the template decides.',
    }),
  ),
  memory_mib: Type.Optional(
    Type.Integer({
      minimum: LIMITS.memoryMibMin,
      maximum: LIMITS.memoryMibMax,
      description: 'Memory in MiB. Default: the template decides.',
    }),
  ),
  disk_mib: Type.Optional(
    Type.Integer({
      minimum: LIMITS.diskMibMin,
      maximum: LIMITS.diskMibMax,
      description: 'Disk in MiB. Default: the template decides.',
    }),
  ),
};

/** The size of a sandbox, in a request or in a placement. */
export const SandboxSize = Type.Object(sizeFields);
export type SandboxSize = Static<typeof SandboxSize>;

const SIZE_FIELDS = Object.keys(sizeFields) as (keyof SandboxSize)[];

/** The size fields of a request, without its other fields. */
export function sizeIn(request: SandboxSize): SandboxSize {
  const named = SIZE_FIELDS.flatMap((field) => {
    const value = request[field];
    return value === undefined ? [] : [[field, value] as const];
  });
  return Object.fromEntries(named);
}
