import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const COPY_MS = 300_000;

export interface OpenSshOptions {
  readonly host: string;
  readonly port: number;
  /** Data directory of the service, whose own key opens its sandboxes. */
  readonly dataDir: string;
  readonly scratch: string;
}

/** The system's OpenSSH client with one connection to a sandbox held open, over which the rest is multiplexed. */
export class OpenSsh {
  readonly #options: readonly string[];
  readonly #port: number;
  readonly #target: string;

  private constructor(options: readonly string[], port: number, host: string) {
    this.#options = options;
    this.#port = port;
    this.#target = `root@${host}`;
  }

  static async open({ host, port, dataDir, scratch }: OpenSshOptions): Promise<OpenSsh> {
    const kept = await readFile(join(dataDir, 'ssh-key.json'), 'utf8');
    const key = join(scratch, 'key');
    await writeFile(key, (JSON.parse(kept) as { privateKey: string }).privateKey);
    await chmod(key, 0o600);
    const options = [
      ['-F', 'none', '-i', key, '-o', 'BatchMode=yes', '-o', 'LogLevel=ERROR'],
      ['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null'],
      ['-o', `ControlPath=${join(scratch, 'mux')}`],
    ].flat();
    const ssh = new OpenSsh(options, port, host);
    // Goes to the background once it is connected, and would hold any pipe of ours open.
    await ended('ssh', [...ssh.#ssh(), '-o', 'ControlMaster=yes', '-N', '-f', ssh.#target]);
    return ssh;
  }

  /** Runs a command in the sandbox over the open connection. */
  async exec(command: string): Promise<void> {
    await ended('ssh', [...this.#ssh(), this.#target, command]);
  }

  async upload(from: string, to: string): Promise<void> {
    await this.#copy(from, `${this.#target}:${to}`);
  }

  async download(from: string, to: string): Promise<void> {
    await this.#copy(`${this.#target}:${from}`, to);
  }

  async close(): Promise<void> {
    await run('ssh', [...this.#ssh(), '-O', 'exit', this.#target]);
  }

  /** The older protocol (-O): the sandbox has `scp`, but no SFTP server. */
  async #copy(from: string, to: string): Promise<void> {
    const words = ['-O', '-q', '-P', String(this.#port), ...this.#options, from, to];
    await run('scp', words, { timeout: COPY_MS });
  }

  #ssh(): string[] {
    return ['-p', String(this.#port), ...this.#options];
  }
}

async function ended(program: string, words: readonly string[]): Promise<void> {
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
}
