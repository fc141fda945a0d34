import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const SERVER = fileURLToPath(new URL('server.cjs', import.meta.url));

/** The hostile server on this machine, in place of the API and of all sandboxes: nothing guards one from the other. */
export async function startUnguarded(): Promise<{ readonly origin: string } & AsyncDisposable> {
  const child = spawn(process.execPath, [SERVER, '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const [port] = await once(lines, 'line');
  return {
    origin: `http://localhost:${port}`,
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}
