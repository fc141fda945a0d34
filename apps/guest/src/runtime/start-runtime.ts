import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { freshenRandomness } from '../fresh-randomness.ts';
import { AgentLink } from '../link/index.ts';
import { GuestSession } from './guest-session.ts';
import type { RuntimeOptions } from './options.ts';
import { makeWorkingDirectory } from './working-directory.ts';

/** A runtime that waits for the worker's configuration, and then runs one session. */
export interface Runtime {
  readonly port: number;
  /** Ends the session and the link. */
  close(): Promise<void>;
}

/** Starts the runtime. Settles when it listens. */
export async function startRuntime(options: RuntimeOptions): Promise<Runtime> {
  for (const path of [options.logPath, options.restoreArchive, options.savedArchive]) {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  }
  // Created now: a directory created in a session would count as a change to save.
  await makeWorkingDirectory(options.home);
  let session: GuestSession | undefined;
  const link = await AgentLink.listen(options.listen, {
    configure: (setup) => {
      // Not before the snapshot, or every clone would draw the same numbers.
      freshenRandomness();
      session = new GuestSession(options, setup, link);
    },
    client: (frame) => session?.client(frame),
    setValues: (env, llm) => session?.setValues(env, llm),
    capture: (request) => session?.capture(request),
    stopCapture: () => session?.stopCapture(),
    save: () => void session?.save(),
  });
  return {
    port: link.port,
    close: async () => {
      await session?.close();
      await link.close();
    },
  };
}
