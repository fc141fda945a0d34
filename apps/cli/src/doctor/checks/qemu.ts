import { type Check, fail, ok, warn } from '../finding.ts';
import { runProgram } from '../run-program.ts';

const RECOMMENDED = 10;
const OLDEST = 7;

/** The virtual machine monitor. */
export const qemuCheck: Check = {
  name: 'QEMU',
  run: async () => {
    const output = await runProgram('qemu-system-x86_64', ['--version']);
    const version = /version (\d+)\.(\d+\.\d+)/.exec(output ?? '');
    if (version === null) return fail('QEMU', 'not found', 'sh scripts/bootstrap.sh installs it');
    const shown = `${version[1]}.${version[2]}`;
    const major = Number(version[1]);
    if (major >= RECOMMENDED) return ok('QEMU', shown);
    const mend = 'install qemu-system-x86 from bookworm-backports';
    return major < OLDEST
      ? fail('QEMU', `${shown} is too old`, mend)
      : warn('QEMU', `${shown} works; 10 is better`, mend);
  },
};
