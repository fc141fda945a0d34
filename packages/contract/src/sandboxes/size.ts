import { Type } from 'typebox';
import { LIMITS } from '../limits.ts';

/** Optional size of a sandbox; each default is the template's. */
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
