import { AGENT_LOG_PATH } from '@svc/contract';
import { type Microvm, MicrovmError } from '@svc/microvm';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { AgentLogs } from './agent-logs.ts';

const KEEP_MS = 20_000;

/** Copies the agent's log out of the sandbox, if it has one. @throws MicrovmError */
export async function keepLog(vm: Microvm, vmId: string, logs: AgentLogs): Promise<void> {
  const signal = withDeadline(undefined, KEEP_MS);
  try {
    const { stream } = await vm.download(AGENT_LOG_PATH, signal);
    await logs.keep(vmId, stream);
  } catch (error) {
    if (error instanceof MicrovmError && MISSING.includes(error.code)) return;
    throw error;
  }
}

const MISSING = ['file_not_found', 'parent_not_found', 'not_a_file', 'is_directory'];
