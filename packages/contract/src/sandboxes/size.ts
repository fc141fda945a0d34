import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';

const DEFAULT = 'Default: the template and the agent decide.';

/**
 * Fields of a create request that set the size of the sandbox, in sandboxes and in sessions. Each is optional; the
 * template and the agent provide the defaults.
 */
export const sizeFields = {
  vcpu: Type.Optional(
    Type.Integer({
      minimum: LIMITS.vcpuMin,
      maximum: LIMITS.vcpuMax,
      description: `Virtual CPUs, rounded up to ${steps(LIMITS.vcpuMin, LIMITS.vcpuMax)}. ${DEFAULT}`,
    }),
  ),
  memory_mib: Type.Optional(
    Type.Integer({
      minimum: LIMITS.memoryMibMin,
      maximum: LIMITS.memoryMibMax,
      description: `Memory in MiB, rounded up to ${steps(LIMITS.memoryMibMin, LIMITS.memoryMibMax)}. ${DEFAULT}`,
    }),
  ),
  disk_mib: Type.Optional(
    Type.Integer({
      minimum: LIMITS.diskMibMin,
      maximum: LIMITS.diskMibMax,
      description: `Disk in MiB, at least that of the image. ${DEFAULT}`,
    }),
  ),
};

/** The size of a sandbox, in a request or in a placement. */
export const SandboxSize = Type.Object(sizeFields);
export type SandboxSize = Static<typeof SandboxSize>;

const SIZE_FIELDS = Object.keys(sizeFields) as (keyof SandboxSize)[];

/**
 * The fields that come in steps, and their smallest step; each further step is twice as large. A machine keeps a
 * snapshot of each combination in use, so there must be few.
 */
const SMALLEST_STEPS: SandboxSize = { vcpu: LIMITS.vcpuMin, memory_mib: LIMITS.memoryMibMin };

/** The size that a request is given: its size fields, each rounded up to the next step. Other fields are left out. */
export function givenSize(request: SandboxSize): SandboxSize {
  const named = SIZE_FIELDS.flatMap((field) => {
    const value = request[field];
    return value === undefined ? [] : [[field, roundedUp(value, SMALLEST_STEPS[field])] as const];
  });
  return Object.fromEntries(named);
}

function roundedUp(value: number, smallest: number | undefined): number {
  if (smallest === undefined) return value;
  let step = smallest;
  while (step < value) step *= 2;
  return step;
}

/** The steps between two limits, for people. */
function steps(smallest: number, largest: number): string {
  const all = [smallest];
  for (let step = smallest * 2; step <= largest; step *= 2) all.push(step);
  return new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(all.map(String));
}
