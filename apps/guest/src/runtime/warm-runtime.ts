import { once } from 'node:events';
import { chown, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { GuestMessage, WorkerMessage } from '@svc/contract';
import type { AgentSession, StartAgent } from '../agents/agent.ts';
import { startRuntime } from './start-runtime.ts';

const DEADLINE_MS = 120_000;

/** An agent that has done its task before it begins. */
const idleAgent: StartAgent = async ({ workingDirectory }) => {
  const session: AgentSession = {
    async runTask() {
      await writeFile(join(workingDirectory, 'file'), '');
      return { status: 'completed', result: '' };
    },
    conversation: () => '',
    close: async () => undefined,
  };
  return session;
};

const MESSAGES: readonly WorkerMessage[] = [
  {
    type: 'configure',
    token: 'warm-up',
    setup: {
      ...{ mode: 'session', agent: 'deictic', model: 'warm-up', dialect: 'openai', wireVersion: 2 },
      ...{ gateway: 'http://127.0.0.1', env: {}, restoreFiles: false },
    },
  },
  { type: 'client', c: 1, frame: { type: 'exec', command: 'true' } },
  { type: 'client', c: 2, frame: { type: 'task', prompt: 'nothing' } },
];

/**
 * Runs a session of a runtime of its own, with a command and a task, so that what is loaded and compiled at first use
 * is in the snapshot of the machine. Leaves nothing behind. `likeHome`: a directory of the user whom agents run as.
 */
export async function warmRuntime(likeHome: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'warm-up-'));
  try {
    const home = join(directory, 'home');
    const { uid, gid } = await stat(likeHome);
    await mkdir(home);
    // Whoever runs as that user has to get there.
    for (const path of [directory, home]) await chown(path, uid, gid);
    await runSession(directory, home);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function runSession(directory: string, home: string): Promise<void> {
  const runtime = await startRuntime({
    listen: { host: '127.0.0.1', port: 0 },
    home,
    logPath: join(directory, 'log'),
    restoreArchive: join(directory, 'restore.tar'),
    savedArchive: join(directory, 'saved.tar'),
    loadAgent: async () => idleAgent,
  });
  const socket = connect(runtime.port, '127.0.0.1');
  try {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    await once(socket, 'connect', { signal });
    for (const message of MESSAGES) socket.write(`${JSON.stringify(message)}\n`);
    const left = new Set(['exit', 'task_completed']);
    for await (const line of createInterface({ input: socket, signal })) {
      const message: GuestMessage = JSON.parse(line);
      if (message.type === 'frame') left.delete(message.frame.type);
      if (left.size === 0) return;
    }
    throw new Error('the session for warming up did not come to its end');
  } finally {
    socket.destroy();
    await runtime.close();
  }
}
