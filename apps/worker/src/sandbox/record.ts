import { type AgentStatus, isActive, type SandboxState, type WorkerSandbox } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import type { Assignment } from './assignment.ts';
import type { Progress } from './labels.ts';

/** Properties of the VM that a sandbox reports, also after the VM is gone. */
export type VmFacts = Pick<
  WorkerSandbox,
  'vcpu' | 'cpu_fraction' | 'memory_mib' | 'disk_mib' | 'rootfs' | 'host_port' | 'endpoint'
>;

/** The part of a record that is not kept in the labels. */
export type Observed = VmFacts &
  Pick<WorkerSandbox, 'ended_at' | 'end_age_ms' | 'active_connections' | 'cpu_seconds'>;

/** The record that callers and the control plane see. */
export function recordOf(
  assignment: Assignment,
  {
    agent_exit_code,
    metered_from: _from,
    workspace_loaded: _loaded,
    quarantined,
    ...progress
  }: Progress,
  observed: Observed,
): WorkerSandbox {
  const { vm_id, generation, tenant_id, created_at, placement } = assignment;
  const hasAgent = placement.agent !== undefined && progress.running_at !== undefined;
  return {
    vm_id,
    generation,
    tenant_id,
    created_at,
    template: placement.template,
    ...progress,
    ...observed,
    ...(hasAgent ? agentStatus(agent_exit_code, progress.state) : {}),
    ...(quarantined === true ? { placement } : {}),
  };
}

/** An agent that had not exited when its sandbox ended has failed. */
function agentStatus(
  exitCode: number | undefined,
  state: SandboxState,
): { agent_status: AgentStatus; agent_exit_code?: number } {
  if (exitCode === undefined) return { agent_status: isActive(state) ? 'running' : 'failed' };
  return { agent_status: exitCode === 0 ? 'completed' : 'failed', agent_exit_code: exitCode };
}

/** The reported properties of a live VM. */
export function factsOf(vm: Microvm): VmFacts {
  return {
    vcpu: vm.vcpu,
    cpu_fraction: vm.cpuFraction,
    memory_mib: vm.memoryMib,
    disk_mib: vm.diskMib,
    rootfs: vm.image,
    host_port: vm.hostPort,
    endpoint: `${vm.host}:${vm.hostPort}`,
  };
}
