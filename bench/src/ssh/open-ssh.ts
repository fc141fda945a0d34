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
  /** Data directory of the service, which contains the private key for its sandboxes. */
  readonly dataDir: string;
  readonly scratch: string;
}

/** The system's OpenSSH client with one open connection to a sandbox, over which it multiplexes commands and copies. */
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
    const file = await readFile(join(dataDir, 'ssh-key.json'), 'utf8');
    const key = join(scratch, 'key');
    await writeFile(key, (JSON.parse(file) as { privateKey: string }).privateKey);
    await chmod(key, 0o600);
    const options = [
      ['-F', 'none', '-i', key, '-o', 'BatchMode=yes', '-o', 'LogLevel=ERROR'],
      ['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null'],
      ['-o', `ControlPath=${join(scratch, 'mux')}`],
    ].flat();
    const ssh = new OpenSsh(options, port, host);
    // OpenSSH goes to the background when it is connected, and would keep a pipe of this process open.
    await runToEnd('ssh', [...ssh.#ssh(), '-o', 'ControlMaster=yes', '-N', '-f', ssh.#target]);
    return ssh;
  }

  /** Runs a command in the sandbox over the open connection. */
  async exec(command: string): Promise<void> {
    await runToEnd('ssh', [...this.#ssh(), this.#target, command]);
  }

  /** Makes a local port one of the sandbox's loopback address, until the connection is closed. */
  async forward(local: number, remote: number): Promise<void> {
    const rule = `127.0.0.1:${local}:127.0.0.1:${remote}`;
    await run('ssh', [...this.#ssh(), '-O', 'forward', '-L', rule, this.#target]);
  }

  async upload(from: string, to: string): Promise<void> {
    await this.#copy(from, `${this.#target}:${to}`);
  }

  async download(from: string, to: string): Promise<void> {
    await this.#copy(`${this.#target}:${from}`, to);
  }

  /** Copies what is in a directory to one in the sandbox with `rsync`. */
  async syncUp(from: string, to: string): Promise<void> {
    await this.#sync(`${from}/`, `${this.#target}:${to}/`);
  }

  /** Copies what is in a directory of the sandbox to one here with `rsync`. */
  async syncDown(from: string, to: string): Promise<void> {
    await this.#sync(`${this.#target}:${from}/`, `${to}/`);
  }

  async close(): Promise<void> {
    await run('ssh', [...this.#ssh(), '-O', 'exit', this.#target]);
  }

  /** Uses the older protocol (-O), because the sandbox has `scp` but no SFTP server. */
  async #copy(from: string, to: string): Promise<void> {
    const words = ['-O', '-q', '-P', String(this.#port), ...this.#options, from, to];
    await run('scp', words, { timeout: COPY_MS });
  }

  async #sync(from: string, to: string): Promise<void> {
    const words = ['--archive', `--rsh=ssh ${this.#ssh().join(' ')}`, from, to];
    await run('rsync', words, { timeout: COPY_MS });
  }

  #ssh(): string[] {
    return ['-p', String(this.#port), ...this.#options];
  }
}

async function runToEnd(program: string, words: readonly string[]): Promise<void> {
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
}
