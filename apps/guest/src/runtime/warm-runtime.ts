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

/** An agent that completes every task at once. */
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
 * Runs a session with a command and a task in a runtime of its own, so that code loaded and compiled on first use is
 * part of the machine's snapshot. Leaves no files behind. `likeHome` is any directory owned by the agents' user.
 */
export async function warmRuntime(likeHome: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'warm-up-'));
  try {
    const home = join(directory, 'home');
    const { uid, gid } = await stat(likeHome);
    await mkdir(home);
    // Processes of that user must be able to enter both.
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
    throw new Error('the warm-up session did not finish');
  } finally {
    socket.destroy();
    await runtime.close();
  }
}
