import { type ChildProcess, spawn } from 'node:child_process';
import { type FileHandle, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { identityOf } from '@svc/service-kit/process';
import type { Confinement } from '../../jail/confinement.ts';
import { MicrovmError } from '../../microvm-error.ts';
import { CONTROL_SOCKET, controlSocket } from './control-socket.ts';
import { QemuProcess } from './qemu-process.ts';
import { Qmp } from './qmp.ts';
import { QEMU } from './version.ts';

/** Makes the out-of-memory killer prefer QEMU processes over all others. */
const OOM_SCORE = 500;
/** Of QEMU's messages, in characters. */
const KEPT_MESSAGES = 4096;

export interface StartQemuOptions {
  readonly confinement: Confinement;
  readonly args: readonly string[];
  /** Becomes file descriptor 3 of the process. */
  readonly state?: FileHandle;
  /** See `QemuProcessOptions`. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Starts a confined QEMU in a session of its own, so that it outlives this process, and connects to it.
 *
 * @throws MicrovmError `boot_failed` with QEMU's last messages when it ends immediately
 */
export async function startQemu(
  { confinement, args, state, onFault }: StartQemuOptions,
  signal: AbortSignal,
): Promise<QemuProcess> {
  const [program, programArgs] = confinement.command(QEMU, args);
  const child = spawn(program, programArgs, {
    stdio: ['ignore', 'ignore', 'pipe', state?.fd ?? 'ignore'],
    detached: true,
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  const messages = endOfMessages(child);
  await spawned(child);
  child.unref();
  const ended = new AbortController();
  child.once('close', () => ended.abort(new MicrovmError('boot_failed', 'QEMU ended immediately')));
  const pid = child.pid ?? 0;
  try {
    const either = AbortSignal.any([signal, ended.signal]);
    const [qmp] = await Promise.all([
      openControlSocket(confinement, either),
      writeFile(`/proc/${pid}/oom_score_adj`, String(OOM_SCORE)),
    ]);
    const identity = await identityOf(pid);
    if (identity === undefined) throw new MicrovmError('boot_failed', 'QEMU ended immediately');
    return new QemuProcess({ confinement, identity, qmp, onFault });
  } catch (error) {
    child.kill('SIGKILL');
    if (!ended.signal.aborted) throw error;
    throw new MicrovmError('boot_failed', `QEMU ended immediately: ${messages()}`);
  } finally {
    // A guest can cause messages without end. From here on, QEMU cannot write them, which it does not mind.
    child.stderr?.destroy();
  }
}

/**
 * Connects to a VM's control socket and moves it to where only this service can replace it. Otherwise a process that
 * took over QEMU could pose as the VM's monitor when the VM is adopted. A restored guest does not run before this.
 */
async function openControlSocket(confinement: Confinement, signal: AbortSignal): Promise<Qmp> {
  const created = join(confinement.socketDirectory, CONTROL_SOCKET);
  const qmp = await Qmp.open(created, signal);
  try {
    await rename(created, controlSocket(confinement));
    return qmp;
  } catch (error) {
    qmp.close();
    throw error;
  }
}

function spawned(child: ChildProcess): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.once('spawn', resolve);
  child.once('error', reject);
  return promise;
}

/** Reads the messages of a process. The returned function gives the last of them. */
function endOfMessages({ stderr }: ChildProcess): () => string {
  let last = '';
  stderr?.setEncoding('utf8').on('data', (text: string) => {
    last = (last + text).slice(-KEPT_MESSAGES);
  });
  stderr?.on('error', () => undefined);
  return () => last.trim();
}
