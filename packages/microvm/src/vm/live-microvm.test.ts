import { once } from 'node:events';
import { expect, test } from 'vitest';
import { MicrovmError } from '../microvm-error.ts';
import { LiveMicrovm, type LiveMicrovmOptions } from './live-microvm.ts';

/** A paused VM whose process answers a resume with this failure. */
function pausedVm(failure: MicrovmError): LiveMicrovm {
  const process = {
    exited: new Promise(() => undefined),
    resume: () => Promise.reject(failure),
    pause: async () => undefined,
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

/** A VM whose process does at once what it is told, but answers the first command only after its deadline. */
function lateVm(paused: boolean) {
  const commands: string[] = [];
  const execute = async (command: string, signal: AbortSignal) => {
    commands.push(command);
    if (commands.length > 1) return;
    await once(signal, 'abort');
    throw signal.reason;
  };
  const process = {
    exited: new Promise(() => undefined),
    pause: (signal: AbortSignal) => execute('stop', signal),
    resume: (signal: AbortSignal) => execute('cont', signal),
  };
  const vm = new LiveMicrovm({
    slot: { address: '127.0.0.1' },
    record: { token: '', hostKey: '' },
    process,
    privateKey: '',
    paused,
  } as unknown as LiveMicrovmOptions);
  return { vm, commands };
}

test('a pause that is answered too late is undone', async () => {
  const { vm, commands } = lateVm(false);
  await expect(vm.pause(AbortSignal.timeout(10))).rejects.toMatchObject({ code: 'pause_failed' });
  expect({ commands, paused: vm.paused }).toEqual({ commands: ['stop', 'cont'], paused: false });
});

test('a resume that is answered too late is undone', async () => {
  const { vm, commands } = lateVm(true);
  await expect(vm.resume(AbortSignal.timeout(10))).rejects.toMatchObject({ code: 'resume_failed' });
  expect({ commands, paused: vm.paused }).toEqual({ commands: ['cont', 'stop'], paused: true });
});

test('a hold that is answered too late is not undone, but repeated', async () => {
  const { vm, commands } = lateVm(false);
  await expect(vm.hold(AbortSignal.timeout(10))).rejects.toMatchObject({ code: 'pause_failed' });
  await vm.hold(NEVER);
  expect({ commands, paused: vm.paused }).toEqual({ commands: ['stop', 'stop'], paused: true });
});

test('a hold that failed ends with a resume', async () => {
  const { vm, commands } = lateVm(false);
  await expect(vm.hold(AbortSignal.timeout(10))).rejects.toMatchObject({ code: 'pause_failed' });
  // The guest does not answer, so its clock cannot be set.
  await expect(vm.resume(AbortSignal.timeout(10))).rejects.toMatchObject({ code: 'resume_failed' });
  expect(commands.slice(0, 2)).toEqual(['stop', 'cont']);
});
