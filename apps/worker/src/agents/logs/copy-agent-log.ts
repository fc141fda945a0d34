import { AGENT_LOG_PATH } from '@svc/contract';
import { type Microvm, MicrovmError } from '@svc/microvm';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { WorkerLogger } from '../../logger.ts';
import type { AgentLogs } from './agent-logs.ts';

const COPY_MS = 20_000;
const NO_LOG = ['file_not_found', 'parent_not_found', 'not_a_file', 'is_directory'];

/** Copies the agent's log, if it has one, from the sandbox to `logs`. Never rejects; ends within 20 s. */
export async function copyAgentLog(
  vm: Pick<Microvm, 'download'>,
  vmId: string,
  logs: AgentLogs,
  logger: Pick<WorkerLogger, 'debug'>,
): Promise<void> {
  try {
    const { stream } = await vm.download(AGENT_LOG_PATH, withDeadline(undefined, COPY_MS));
    await logs.keep(vmId, stream);
  } catch (error) {
    if (error instanceof MicrovmError && NO_LOG.includes(error.code)) return;
    logger.debug({ err: error }, 'cannot copy an agent log');
  }
}
