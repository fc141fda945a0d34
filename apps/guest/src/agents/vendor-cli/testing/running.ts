import { readdir, readFile, readlink } from 'node:fs/promises';

/** Whether a process with exactly this command line runs. */
export async function isRunning(command: string): Promise<boolean> {
  const lines = await Promise.all((await pids()).map((pid) => read(pid, 'cmdline')));
  return lines.some((line) => line.split('\0').join(' ').trim() === command);
}

/** Kills the processes of a program that run for the agent with this home directory. */
export async function killAll(program: string, home: string): Promise<void> {
  for (const pid of await pids()) {
    const executable = await readlink(`/proc/${pid}/exe`).catch(() => '');
    const environment = (await read(pid, 'environ')).split('\0');
    if (executable === program && environment.includes(`HOME=${home}`)) {
      process.kill(Number(pid), 'SIGKILL');
    }
  }
}

async function pids(): Promise<string[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
}

function read(pid: string, file: string): Promise<string> {
  return readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
}
