import { addAbortSignal } from 'node:stream';
import { AGENT_LOG_PATH } from '@svc/contract';
import { type Microvm, MicrovmError } from '@svc/microvm';
import { withDeadline } from '@svc/service-kit/concurrency';
import { type LogEnd, readLogEnd } from '@svc/service-kit/log-tail';

const READ_MS = 20_000;
const NO_LOG = ['file_not_found', 'parent_not_found', 'not_a_file', 'is_directory'];

/**
 * Reads the agent's log in a running VM, within 20 s. Empty before the agent has written any.
 * @throws MicrovmError, or the error of the transfer
 */
export async function readGuestLog(vm: Pick<Microvm, 'download'>): Promise<LogEnd> {
  const signal = withDeadline(undefined, READ_MS);
  try {
    const { stream } = await vm.download(AGENT_LOG_PATH, signal);
    // A guest that never stops sending is cut off too.
    return await readLogEnd(addAbortSignal(signal, stream));
  } catch (error) {
    if (error instanceof MicrovmError && NO_LOG.includes(error.code)) {
      return { bytes: Buffer.alloc(0), totalBytes: 0 };
    }
    throw error;
  }
}
