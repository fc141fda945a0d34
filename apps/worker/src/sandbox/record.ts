import type { AgentStatus, EndReason, SandboxState, WorkerSandbox } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import type { SandboxLabels } from './labels.ts';
import type { Placement } from './placement.ts';

/** What a sandbox reports of its VM; outlives the VM. */
export type VmFacts = Pick<
  WorkerSandbox,
  'vcpu' | 'cpu_fraction' | 'memory_mib' | 'disk_mib' | 'rootfs' | 'host_port' | 'endpoint'
>;

/** Where a sandbox stands in its life. Times as records carry them. */
export interface Life {
  readonly placement: Placement;
  readonly state: SandboxState;
  readonly revision: number;
  readonly runningAt: string | undefined;
  readonly endedAt: string | undefined;
  readonly endReason: EndReason | undefined;
  /** Of a one-shot agent that has ended. */
  readonly agentExitCode: number | undefined;
}

/** The record that callers and the control plane see. */
export function recordOf(
  { placement, state, revision, runningAt, endedAt, endReason, ...life }: Life,
  facts: VmFacts,
  use: Pick<WorkerSandbox, 'active_connections' | 'cpu_seconds'>,
): WorkerSandbox {
  return {
    vm_id: placement.vmId,
    generation: placement.generation,
    revision,
    tenant_id: placement.tenantId,
    template: placement.template,
    state,
    ...facts,
    created_at: placement.createdAt,
    ...(runningAt === undefined ? {} : { running_at: runningAt }),
    ...(endedAt === undefined ? {} : { ended_at: endedAt }),
    ...(endReason === undefined ? {} : { end_reason: endReason }),
    ...use,
    ...agentOf(placement, runningAt, life.agentExitCode),
  };
}

function agentOf(
  { agent }: Placement,
  runningAt: string | undefined,
  exitCode: number | undefined,
): { agent_status?: AgentStatus; agent_exit_code?: number } {
  if (agent === undefined || runningAt === undefined) return {};
  if (exitCode === undefined) return { agent_status: 'running' };
  return { agent_status: exitCode === 0 ? 'completed' : 'failed', agent_exit_code: exitCode };
}

/** The labels by which a restarted worker finds the sandbox again. */
export function labelsOf({
  placement,
  state,
  revision,
  runningAt,
  endReason,
  agentExitCode,
}: Life): SandboxLabels {
  const { agent } = placement;
  return {
    version: 1,
    role: 'sandbox',
    vm_id: placement.vmId,
    generation: placement.generation,
    revision,
    tenant_id: placement.tenantId,
    state,
    created_at: placement.createdAt,
    idle_timeout_seconds: placement.idleTimeoutSeconds,
    max_lifetime_seconds: placement.maxLifetimeSeconds,
    lifetime_ends_at: placement.lifetimeEndsAt,
    ...(runningAt === undefined ? {} : { running_at: runningAt }),
    ...(endReason === undefined ? {} : { end_reason: endReason }),
    ...(agent === undefined ? {} : { agent: { ...agent, ...exitOf(agentExitCode) } }),
  };
}

function exitOf(code: number | undefined): { exit_code?: number } {
  return code === undefined ? {} : { exit_code: code };
}

/** What is reported of a live VM. */
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
