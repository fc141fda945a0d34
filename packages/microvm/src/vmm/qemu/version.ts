import { MicrovmError } from '../../facade.ts';
import { run } from '../../network/command.ts';

export const QEMU = '/usr/bin/qemu-system-x86_64';

/** What the installed QEMU is and can do. */
export interface QemuVersion {
  readonly text: string;
  /** Since 8.2: can map a memory file privately without opening it for writing. */
  readonly privateReadOnlyMemory: boolean;
}

/** Asks the installed QEMU. Throws `internal` when there is none. */
export async function qemuVersion(): Promise<QemuVersion> {
  const output = await run(QEMU, ['--version']);
  const [, text, major, minor] = /version ((\d+)\.(\d+)\.\d+)/.exec(output) ?? [];
  if (text === undefined) {
    throw new MicrovmError('internal', `cannot tell the version of ${QEMU}`);
  }
  const number = Number(major) * 100 + Number(minor);
  return { text, privateReadOnlyMemory: number >= 802 };
}
