import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from './until.ts';

const SVC = fileURLToPath(new URL('../../../apps/cli/bin/svc.js', import.meta.url));
/** Building the image takes the longest of it, where no run before has built it. */
const READY_MS = 900_000;
const COMMAND_MS = 180_000;

/** What the service writes of itself into its data directory. */
export interface ServiceRecord {
  readonly process: { readonly pid: number };
  readonly state: 'starting' | 'ready';
  readonly base_url: string;
  readonly ca_file: string;
}

/** How to run the command line: its environment, and a program in front of it. */
export interface CommandContext {
  readonly env: NodeJS.ProcessEnv;
  /** Program and arguments that run the command line, such as one that changes the network namespace. */
  readonly launcher: readonly string[];
}

/** Starts `svc up` in the foreground as a child. What it prints goes to a file. */
export async function spawnService(context: CommandContext, output: string): Promise<ChildProcess> {
  const file = await open(output, 'a');
  try {
    return spawnSvc(context, ['up'], file.fd);
  } finally {
    await file.close();
  }
}

/** Waits until the service says that it is ready. Fails with what it printed when it ends instead. */
export async function serviceReady(
  child: ChildProcess,
  dataDir: string,
  output: string,
): Promise<ServiceRecord> {
  const ready = async () => {
    if (hasEnded(child)) {
      throw new Error(`the service did not start:\n${await readFile(output, 'utf8')}`);
    }
    const record = await readRecord(dataDir);
    return record?.state === 'ready' && record.process.pid === child.pid ? record : undefined;
  };
  return until('the service is ready', ready, { deadlineMs: READY_MS, intervalMs: 25 });
}

/** Runs a command of the command line to its end; its exit code and what it printed. */
export async function runSvc(
  context: CommandContext,
  args: readonly string[],
): Promise<{ exitCode: number | null; output: string }> {
  const child = spawnSvc(context, args, 'pipe');
  const timer = setTimeout(() => child.kill('SIGKILL'), COMMAND_MS);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const [exitCode] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  return { exitCode, output };
}

export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function spawnSvc(
  { env, launcher }: CommandContext,
  args: readonly string[],
  output: 'pipe' | number,
): ChildProcess {
  const [program = process.execPath, ...rest] = [...launcher, process.execPath, SVC, ...args];
  return spawn(program, rest, { env, stdio: ['ignore', output, output] });
}

/** Undefined before the service wrote it; it is replaced as a whole, so it is never half there. */
async function readRecord(dataDir: string): Promise<ServiceRecord | undefined> {
  const text = await readFile(join(dataDir, 'service.json'), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as ServiceRecord);
}
