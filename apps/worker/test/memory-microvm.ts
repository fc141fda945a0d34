import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import {
  type Microvm,
  type MicrovmDownload,
  MicrovmError,
  type MicrovmErrorCode,
  type MicrovmExecRequest,
  type MicrovmExecResult,
  type MicrovmTree,
  type PersonalizeOptions,
} from '@svc/microvm';

/** Failures of a VM that a test can switch on. */
export interface Faults {
  personalize?: Error | undefined;
  label?: Error | undefined;
  pause?: Error | undefined;
  resume?: Error | undefined;
  download?: Error | undefined;
  /** How many calls of destroy will fail. */
  destroys: number;
}

/**
 * A VM that exists in memory only. It keeps labels and files in memory and runs commands as processes of this machine,
 * each in a process group of its own.
 */
export class MemoryMicrovm implements Microvm {
  readonly id: string;
  readonly template: string;
  readonly image: string;
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly diskMib: number;
  readonly cpuFraction = 1;
  host = '198.18.0.1';
  readonly hostPort = 22;
  readonly faults: Faults = { destroys: 0 };
  /** CPU seconds of its process. */
  cpu = 1.5;
  /** Space that its disk takes on the machine. */
  diskUsedMib = 1;
  readonly files = new Map<string, Buffer>();
  readonly given: PersonalizeOptions[] = [];
  /** All labels that were written, in order. */
  readonly history: Record<string, unknown>[] = [];
  /** Process groups of the running commands. */
  readonly groups = new Set<number>();
  /** Port of the agent runtime on this machine; undefined if there is none. */
  agentPort: number | undefined;
  paused = false;
  pauses = 0;
  resumes = 0;
  labels: Record<string, unknown> = {};
  readonly #exited = Promise.withResolvers<{ reason: string }>();
  readonly #onGone: () => void;
  readonly #sockets = new Set<Socket>();
  #gone = false;

  constructor(
    size: Pick<Microvm, 'id' | 'template' | 'image' | 'vcpu' | 'memoryMib' | 'diskMib'>,
    onGone: () => void,
  ) {
    this.id = size.id;
    this.template = size.template;
    this.image = size.image;
    this.vcpu = size.vcpu;
    this.memoryMib = size.memoryMib;
    this.diskMib = size.diskMib;
    this.#onGone = onGone;
  }

  get exited(): Promise<{ reason: string }> {
    return this.#exited.promise;
  }

  get isGone(): boolean {
    return this.#gone;
  }

  async diskUsedBytes(): Promise<number> {
    return this.diskUsedMib * 1024 * 1024;
  }

  async label(data: Record<string, unknown>): Promise<void> {
    if (this.faults.label !== undefined) throw this.faults.label;
    this.#assertAlive();
    this.labels = structuredClone(data);
    this.history.push(this.labels);
  }

  async personalize(options: PersonalizeOptions, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.faults.personalize !== undefined) throw this.faults.personalize;
    this.#assertAlive();
    this.given.push(options);
  }

  async exec(request: MicrovmExecRequest, signal: AbortSignal): Promise<MicrovmExecResult> {
    this.#assertAlive();
    signal.throwIfAborted();
    const child = spawn('sh', ['-c', request.command], {
      detached: true,
      cwd: request.cwd ?? '/',
      env: { PATH: process.env.PATH, ...request.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const group = child.pid ?? 0;
    this.groups.add(group);
    const kill = () => {
      try {
        process.kill(-group, 'SIGKILL');
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
      }
    };
    signal.addEventListener('abort', kill, { once: true });
    const exit = once(child, 'close');
    const pump = async (stream: 'stdout' | 'stderr') => {
      for await (const chunk of child[stream]) await request.onOutput(stream, chunk);
    };
    try {
      await Promise.all([pump('stdout'), pump('stderr'), exit]);
    } finally {
      signal.removeEventListener('abort', kill);
      this.groups.delete(group);
    }
    signal.throwIfAborted();
    return { exitCode: child.exitCode ?? 137 };
  }

  async checkDirectory(path: string, signal: AbortSignal): Promise<void> {
    this.#assertAlive();
    const found = await stat(path).catch(() => undefined);
    signal.throwIfAborted();
    if (found?.isDirectory() !== true) throw new MicrovmError('cwd_not_found', 'no directory');
  }

  async upload(path: string, source: Readable, signal: AbortSignal): Promise<void> {
    this.#assertAlive();
    if (path.startsWith('/missing/')) throw new MicrovmError('parent_not_found', 'no parent');
    if (path.startsWith('/file/')) throw new MicrovmError('parent_not_directory', 'a file');
    if (path === '/loop') throw new MicrovmError('symlink_loop', 'a loop');
    if (path === '/full') throw new MicrovmError('disk_full', 'no space');
    const bytes = await buffer(source);
    signal.throwIfAborted();
    this.files.set(path, bytes);
  }

  /** The trees of this VM; a test sets it. */
  trees: (root: string) => MicrovmTree = () => {
    throw new MicrovmError('guest_unreachable', 'this VM has no trees');
  };

  tree(root: string): MicrovmTree {
    this.#assertAlive();
    return this.trees(root);
  }

  async download(path: string, signal: AbortSignal): Promise<MicrovmDownload> {
    this.#assertAlive();
    signal.throwIfAborted();
    if (this.faults.download !== undefined) throw this.faults.download;
    if (this.paused) throw new MicrovmError('guest_unreachable', 'the VM is paused');
    if (path === '/') throw new MicrovmError('is_directory', 'a directory');
    const bytes = this.files.get(path);
    if (bytes === undefined) throw new MicrovmError('file_not_found', 'no such file');
    const size = path.startsWith('/proc/') ? undefined : bytes.length;
    return { size, stream: Readable.from([bytes]) };
  }

  async dialAgent(signal: AbortSignal): Promise<Socket> {
    this.#assertAlive();
    signal.throwIfAborted();
    if (this.agentPort === undefined || this.paused) {
      throw new MicrovmError('guest_unreachable', 'no agent runtime');
    }
    return this.#dial(this.agentPort, 'guest_unreachable', signal);
  }

  async dialPort(port: number, signal: AbortSignal): Promise<Socket> {
    this.#assertAlive();
    signal.throwIfAborted();
    return this.#dial(port, 'port_unreachable', signal);
  }

  async pause(signal: AbortSignal): Promise<void> {
    this.#assertAlive();
    signal.throwIfAborted();
    this.pauses += 1;
    if (this.faults.pause !== undefined) throw this.faults.pause;
    this.paused = true;
  }

  async hold(signal: AbortSignal): Promise<void> {
    if (!this.paused) await this.pause(signal);
  }

  async resume(signal: AbortSignal): Promise<void> {
    this.#assertAlive();
    signal.throwIfAborted();
    this.resumes += 1;
    if (this.faults.resume !== undefined) throw this.faults.resume;
    this.paused = false;
  }

  async cpuSeconds(): Promise<number> {
    this.#assertAlive();
    return this.cpu;
  }

  async destroy(): Promise<void> {
    if (this.faults.destroys > 0) {
      this.faults.destroys -= 1;
      throw new MicrovmError('internal', 'cannot destroy');
    }
    this.die('destroyed');
  }

  /** Ends the VM process, as if killed. */
  die(reason = 'killed'): void {
    if (this.#gone) return;
    this.#gone = true;
    for (const socket of this.#sockets) socket.destroy();
    this.#onGone();
    this.#exited.resolve({ reason });
  }

  async #dial(port: number, code: MicrovmErrorCode, signal: AbortSignal): Promise<Socket> {
    const socket = connect({ host: '127.0.0.1', port });
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    try {
      await once(socket, 'connect', { signal });
    } catch (cause) {
      socket.destroy();
      throw new MicrovmError(code, 'no listener', { cause });
    }
    return socket;
  }

  #assertAlive(): void {
    if (this.#gone) throw new MicrovmError('vm_gone', 'the VM is gone');
  }
}
