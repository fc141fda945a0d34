import { readdir, readFile, readlink } from 'node:fs/promises';

/** Whether a process with exactly this command line is running. */
export async function isRunning(command: string): Promise<boolean> {
  const lines = await Promise.all((await pids()).map((pid) => read(pid, 'cmdline')));
  return lines.some((line) => line.split('\0').join(' ').trim() === command);
}

/** Kills the processes of a program that belong to the agent with this home directory. */
export async function killAll(program: string, home: string): Promise<void> {
  for (const pid of await pids()) {
    if (await isOf(pid, program, home)) process.kill(Number(pid), 'SIGKILL');
  }
}

/** Ids of this process's children that run a program for the agent with this home directory. */
export async function childrenOf(program: string, home: string): Promise<string[]> {
  const parent = new RegExp(`^PPid:\\s+${process.pid}$`, 'm');
  const found: string[] = [];
  for (const pid of await pids()) {
    if (parent.test(await read(pid, 'status')) && (await isOf(pid, program, home))) found.push(pid);
  }
  return found;
}

async function isOf(pid: string, program: string, home: string): Promise<boolean> {
  const executable = await readlink(`/proc/${pid}/exe`).catch(() => '');
  const environment = (await read(pid, 'environ')).split('\0');
  return executable === program && environment.includes(`HOME=${home}`);
}

async function pids(): Promise<string[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
}

function read(pid: string, file: string): Promise<string> {
  return readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
}
