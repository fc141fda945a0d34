import { expect, test } from 'vitest';
import { MicrovmError } from '../microvm-error.ts';
import { LiveMicrovm, type LiveMicrovmOptions } from './live-microvm.ts';

/** A paused VM whose process answers a resume with this failure. */
function pausedVm(failure: MicrovmError): LiveMicrovm {
  const process = {
    exited: new Promise(() => undefined),
    resume: () => Promise.reject(failure),
  };
  return new LiveMicrovm({
    slot: { address: '127.0.0.1' },
    record: { token: '', hostKey: '' },
    process,
    privateKey: '',
    paused: true,
  } as unknown as LiveMicrovmOptions);
}

const NEVER = new AbortController().signal;

test('a VM that dies while it is resumed has ended', async () => {
  const vm = pausedVm(new MicrovmError('vm_gone', 'the VM process is gone'));
  await expect(vm.resume(NEVER)).rejects.toMatchObject({ code: 'vm_gone' });
});

test('a VM that cannot be resumed stays paused', async () => {
  const vm = pausedVm(new MicrovmError('timeout', 'no answer'));
  await expect(vm.resume(NEVER)).rejects.toMatchObject({ code: 'resume_failed' });
  expect(vm.paused).toBe(true);
});
