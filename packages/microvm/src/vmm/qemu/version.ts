import { runProgram } from '@svc/service-kit/process';
import { MicrovmError } from '../../microvm-error.ts';

export const QEMU = '/usr/bin/qemu-system-x86_64';

/** The version of the installed QEMU, and its features. */
export interface QemuVersion {
  readonly text: string;
  /** Can map a memory file privately without opening it for writing (since 8.2). */
  readonly privateReadOnlyMemory: boolean;
}

/** Queries the installed QEMU. Throws ProgramError when there is none, `internal` when its version is unreadable. */
export async function qemuVersion(): Promise<QemuVersion> {
  const output = await runProgram(QEMU, ['--version']);
  const [, text, major, minor] = /version ((\d+)\.(\d+)\.\d+)/.exec(output) ?? [];
  if (text === undefined) {
    throw new MicrovmError('internal', `cannot determine the version of ${QEMU}`);
  }
  const number = Number(major) * 100 + Number(minor);
  return { text, privateReadOnlyMemory: number >= 802 };
}
