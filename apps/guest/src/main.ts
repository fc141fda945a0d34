/**
 * The agent runtime of a sandbox. It is running, with the usual agent warm, when the image is frozen, and waits for
 * the worker to say which session it is.
 */

import {
  AGENT_HOME,
  AGENT_LINK_PORT,
  AGENT_LOG_PATH,
  RESTORE_ARCHIVE,
  SAVED_ARCHIVE,
} from '@svc/contract';
import { warmDeictic } from './agents/deictic/index.ts';
import { loadAgent } from './agents/registry.ts';
import { startRuntime, warmRuntime } from './runtime/index.ts';

/** The guest's gateway, from where alone the worker comes. */
const WORKER_ADDRESS = '172.30.0.1';

async function main(): Promise<void> {
  await warmDeictic();
  await warmRuntime(AGENT_HOME);
  // What loading left behind would be in the memory of every clone.
  globalThis.gc?.();
  const runtime = await startRuntime({
    listen: { host: '0.0.0.0', port: AGENT_LINK_PORT, workerAddress: WORKER_ADDRESS },
    home: AGENT_HOME,
    logPath: AGENT_LOG_PATH,
    restoreArchive: RESTORE_ARCHIVE,
    savedArchive: SAVED_ARCHIVE,
    loadAgent,
  });
  process.once('SIGTERM', () => {
    void runtime.close().finally(() => process.exit(0));
  });
}

// A promise that an agent's library forgot must not end the session.
process.on('unhandledRejection', (reason) => console.error('unhandled rejection', reason));

main().catch((error: unknown) => {
  console.error('the agent runtime cannot start', error);
  process.exit(1);
});
