import { AGENT_SIZES } from '@svc/contract';
import type { VmShape } from '@svc/microvm';

/** The default shapes of agents, without duplicates and without the image's own shape. */
export function agentShapes(image: VmShape): VmShape[] {
  const shapes = new Map<string, VmShape>();
  for (const size of Object.values(AGENT_SIZES)) {
    const shape = {
      vcpu: size.vcpu ?? image.vcpu,
      memoryMib: size.memory_mib ?? image.memoryMib,
    };
    if (shape.vcpu === image.vcpu && shape.memoryMib === image.memoryMib) continue;
    shapes.set(`${shape.vcpu}x${shape.memoryMib}`, shape);
  }
  return [...shapes.values()];
}
