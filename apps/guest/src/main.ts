/**
 * The agent runtime of a sandbox. The snapshot is taken while it runs with deictic warmed up; in a restored sandbox it
 * waits for the worker to configure its session.
 */

import {
  AGENT_HOME,
  AGENT_LOG_PATH,
  GUEST_LINK,
  RESTORE_ARCHIVE,
  SAVED_ARCHIVE,
} from '@svc/contract';
import { warmDeictic } from './agents/deictic/index.ts';
import { loadAgent } from './agents/registry.ts';
import { sandboxDesktop } from './desktop/index.ts';
import { startRuntime, warmRuntime } from './runtime/index.ts';

async function main(): Promise<void> {
  await warmDeictic();
  await warmRuntime(AGENT_HOME);
  // Garbage left by loading would be in the memory of every clone.
  globalThis.gc?.();
  const runtime = await startRuntime({
    listen: {
      host: '0.0.0.0',
      port: GUEST_LINK.guestPorts.agent,
      workerAddress: GUEST_LINK.gateway,
    },
    home: AGENT_HOME,
    logPath: AGENT_LOG_PATH,
    restoreArchive: RESTORE_ARCHIVE,
    savedArchive: SAVED_ARCHIVE,
    loadAgent,
    desktop: sandboxDesktop(),
  });
  process.once('SIGTERM', () => {
    void runtime.close().finally(() => process.exit(0));
  });
}

// An unhandled rejection in an agent's library must not end the session.
process.on('unhandledRejection', (reason) => console.error('unhandled rejection', reason));

main().catch((error: unknown) => {
  console.error('the agent runtime cannot start', error);
  process.exit(1);
});
